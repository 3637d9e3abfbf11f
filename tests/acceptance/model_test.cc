// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::vec;
using ::testing::DoubleNear;
using ::testing::Each;

// What optimizers, metrics and random layers promise when there are many replicas.
class Model : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, Model, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Model, S05_ClipAfterAggregation) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const Variable a(Tensor(0.0f)), b(Tensor(0.0f));
  optim::SGD sgd({.learning_rate = 1, .clip = {.global_norm = 1}});
  strategy.run([&] {
    GradientTape tape;
    sgd.minimize(replica_index() == 0 ? a * 3 : b * 4, {a, b}, tape);
  });
  EXPECT_THAT(items(a.local_values()), Each(DoubleNear(-0.6, 1e-6)));
  EXPECT_THAT(items(b.local_values()), Each(DoubleNear(-0.8, 1e-6)));  // -1 is clipped per replica
}

TEST_P(Model, S06_ATermThatDoesNotDependOnData) {
  for (const int count : {1, 2, 4}) {
    const auto strategy = make(count);
    const auto scope = strategy.scope();
    const Variable w(Tensor(2.0f));
    optim::SGD sgd({.learning_rate = 1});
    strategy.run([&] {
      GradientTape tape;
      sgd.minimize(nn::scale_regularization_loss(square(w) * 0.1), {w}, tape);
    });
    EXPECT_THAT(items(w.local_values()), Each(DoubleNear(2 - 0.4, 1e-6))) << count;
  }
}

TEST_P(Model, S10_AccuracyOverUnevenReplicas) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  metrics::SparseCategoricalAccuracy accuracy;
  strategy.run([&] {
    const Tensor logits(Shape{1, 2}, {0.0f, 1.0f});  // says 1
    if (replica_index() == 0)
      accuracy.update_state(vec<std::int64_t>({1, 1, 1}), concat({logits, logits, logits}, 0));
    else
      accuracy.update_state(vec<std::int64_t>({0}), logits);
  });
  EXPECT_EQ(accuracy.result().item<double>(), 0.75);
}

TEST_P(Model, S10_EveryExampleCountsOnce) {
  // 777 of 1000 examples carry the label that is predicted; batches of 8 over 3 replicas.
  struct Example {
    Tensor logits, label;
  };
  const auto strategy = make(3);
  const Tensor logits = make_tensor<float>({1000, 2}, [](std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2);
  });
  const Tensor labels = make_tensor<std::int64_t>({1000}, [](std::span<std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i < 777;
  });
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Example{logits, labels}).shuffle({.seed = 1}).batch(8));
  const auto scope = strategy.scope();
  metrics::SparseCategoricalAccuracy accuracy;
  std::int64_t rows = 0;
  for (const auto& batch : batches) {
    strategy.run([&](const Example& own) { accuracy.update_state(own.label, own.logits); }, batch);
    rows += batch.rows()->global;
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_EQ(accuracy.result().item<double>(), 0.777);
}

TEST_P(Model, S13_MasksDifferAndRepeat) {
  const auto masks = [&] {
    const MirroredStrategy strategy(
        {.devices = testing::cpus(4), .replica_threads = GetParam(), .seed = 7});
    const auto scope = strategy.scope();
    const nn::Dropout dropout(0.5);
    std::vector<std::vector<float>> values;
    const Tensor x = ones({1000});
    for (const Tensor& mask : strategy.run([&] { return dropout(x, {.training = true}); }))
      values.push_back(mask.to_vector<float>());
    return values;
  };
  const auto first = masks();
  ASSERT_EQ(first.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(first[i], first[j]);
  for (const auto& mask : first) {
    EXPECT_THAT(mask, Each(::testing::AnyOf(0, 2)));
    EXPECT_NEAR(static_cast<double>(std::count(mask.begin(), mask.end(), 0)), 500, 80);
  }
  EXPECT_EQ(masks(), first);
}

}  // namespace
}  // namespace lockstep
