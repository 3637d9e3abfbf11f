// SPDX-License-Identifier: Apache-2.0
// The loop of TensorFlow's guide to custom training with tf.distribute, beside TensorFlow
// (tests/golden/training_guide.py).
#include <gtest/gtest.h>

#include "conformance/golden_training.h"
#include "support/replicas.h"

namespace lockstep::testing {
namespace {

class GuideLoop {
 public:
  GuideLoop(const Json& weights, const Json& one)
      : one_(one),
        strategy_(replicas(one.at("replicas"))),
        scope_(strategy_.scope()),
        policy_(golden_dtype(one)),
        dense_(64, 64, {.activation = nn::relu}),
        model_{nn::Conv2D(1, 32, {.activation = nn::relu}),
               nn::MaxPool2D(),
               nn::Conv2D(32, 64, {.activation = nn::relu}),
               nn::MaxPool2D(),
               nn::Flatten(),
               dense_,
               nn::Dense(64, 10)},
        variables_(with_golden_weights(weights, model_.variables())),
        optimizer_(golden_optimizer(one)) {}

  void run() {
    Noise noise(kGoldenData);
    const auto train = distributed(noise, one_.at("rows"));
    const auto test = distributed(noise, one_.at("test_rows"));
    for (std::size_t epoch = 0; epoch < one_.at("epochs").size(); ++epoch) {
      SCOPED_TRACE("epoch " + std::to_string(epoch));
      run_epoch(train, test, one_.at("epochs")[epoch]);
      if (::testing::Test::HasFailure()) return;
    }
    if (golden_dtype(one_) == DType::f64) expect_golden_variables(one_.at("kept"), variables_);
  }

 private:
  DistributedDataset<Examples> distributed(Noise& noise, std::int64_t rows) const {
    const Examples examples =
        in_dtype(classified(noise, {rows, 12, 12, 1}, 10), golden_dtype(one_));
    return strategy_.distribute_dataset(
        data::from_tensor_slices(examples).batch(one_.at("batch").get<std::int64_t>()));
  }

  void run_epoch(const DistributedDataset<Examples>& train,
                 const DistributedDataset<Examples>& test, const Json& expected) {
    train_accuracy_.reset_state();
    test_accuracy_.reset_state();
    test_loss_.reset_state();
    std::size_t step = 0;
    for (const auto& batch : train) {
      ASSERT_LT(step, expected.at("loss").size());
      const auto losses =
          strategy_.run([&](const Examples& own) { return train_on_replica(own); }, batch);
      expect_golden_loss(strategy_.reduce(ReduceOp::sum, losses), expected.at("loss")[step++]);
    }
    EXPECT_EQ(step, expected.at("loss").size());
    for (const auto& batch : test)
      strategy_.run([&](const Examples& own) { test_on_replica(own); }, batch);
    if (golden_dtype(one_) == DType::f32) return;  // near equal logits may change their order
    expect_golden_loss(test_loss_.result(), expected.at("test_loss"));
    expect_golden_loss(train_accuracy_.result(), expected.at("train_accuracy"));
    expect_golden_loss(test_accuracy_.result(), expected.at("test_accuracy"));
  }

  Tensor train_on_replica(const Examples& batch) const {
    GradientTape tape;
    const Tensor logits = model_(batch.x, {.training = true});
    nn::AverageLossOptions divisor;
    if (const Json& size = one_.at("global_batch_size"); !size.is_null())
      divisor.global_batch_size = size.get<std::int64_t>();
    const Tensor loss =
        nn::compute_average_loss(nn::sparse_softmax_cross_entropy(batch.y, logits), divisor) +
        nn::scale_regularization_loss(nn::l2(1.0 / 128)(dense_.kernel()));
    optimizer_->minimize(loss, model_.trainable_variables(), tape);
    train_accuracy_.update_state(batch.y, logits);
    return loss;
  }

  void test_on_replica(const Examples& batch) const {
    const Tensor logits = model_(batch.x);
    test_loss_.update_state(nn::sparse_softmax_cross_entropy(batch.y, logits));
    test_accuracy_.update_state(batch.y, logits);
  }

  const Json& one_;
  MirroredStrategy strategy_;
  Strategy::Scope scope_;
  nn::PolicyScope policy_;
  nn::Dense dense_;
  nn::Sequential model_;
  std::vector<Variable> variables_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  mutable metrics::SparseCategoricalAccuracy train_accuracy_, test_accuracy_;
  mutable metrics::Mean test_loss_;
};

TEST(GoldenTraining, CustomTrainingGuide) {
  const Json golden = golden_training_fixture("guide");
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("replicas").dump() + " replicas, batches of " + one.at("batch").dump() +
                 ", " + one.at("dtype").get<std::string>());
    GuideLoop(golden.at("weights"), one).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep::testing
