// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn.h>
#include <lockstep/ops/update.h>
#include <lockstep/optim.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include <set>
#include <string>

namespace lockstep::nn {
namespace {

// Layers, losses, optimizers and strategies together.

struct Example {
  Tensor image, label;
};

MirroredStrategy replicas(int count, std::uint64_t seed = 0) {
  MirroredOptions options{.seed = seed};
  for (int i = 0; i < count; ++i) options.devices.push_back("CPU:" + std::to_string(i));
  return MirroredStrategy(options);
}

// 23 images of 6 x 6; the label says where the bright pixel is.
data::Dataset<Example> bright_pixels() {
  constexpr std::int64_t kRows = 23;
  std::vector<float> pixels(kRows * 36, 0.1f);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kRows; ++i) {
    labels.push_back(i % 3);
    pixels[static_cast<std::size_t>(36 * i + 12 * (i % 3) + i % 4)] = 1;
  }
  return data::from_tensor_slices(Example{Tensor({kRows, 6, 6, 1}, std::span<const float>(pixels)),
                                          Tensor({kRows}, std::span<const std::int64_t>(labels))});
}

Sequential make_model() {
  return Sequential{Conv2D(1, 4, {.padding = Padding::same, .activation = relu}), MaxPool2D(),
                    Flatten(), Dense(36, 16, {.activation = tanh}), Dense(16, 3)};
}

struct Outcome {
  std::vector<float> losses;  // of each step
  std::vector<std::vector<float>> weights;
};

Outcome train(int count, int epochs) {
  const MirroredStrategy strategy = replicas(count, 5);
  const auto batches = strategy.distribute_dataset(bright_pixels().batch(8));
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  optim::Adam optimizer({.learning_rate = 0.01});
  Outcome outcome;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& batch : batches) {
      const auto loss = strategy.run(
          [&](const Example& mine) {
            GradientTape tape;
            const Tensor part =
                compute_average_loss(sparse_softmax_cross_entropy(mine.label, model(mine.image)));
            optimizer.minimize(part, model.trainable_variables(), tape);
            return part;
          },
          batch);
      outcome.losses.push_back(strategy.reduce(ReduceOp::sum, loss).item<float>());
    }
  lockstep::testing::require_equal_replicas(model.variables());
  for (const Variable& variable : model.variables())
    outcome.weights.push_back(variable.read().to_vector<float>());
  return outcome;
}

TEST(Training, LearnsAndComesToTheSameWithAnyNumberOfReplicas) {
  const Outcome one = train(1, 10);
  ASSERT_EQ(one.losses.size(), 30u);
  EXPECT_NEAR(one.losses.front(), std::log(3), 0.3);
  EXPECT_LT(one.losses.back(), 0.3);
  for (const int count : {2, 3, 4}) {
    const Outcome many = train(count, 10);
    for (std::size_t step = 0; step < one.losses.size(); ++step)
      ASSERT_NEAR(many.losses[step], one.losses[step], 1e-4) << count << " replicas, step " << step;
    for (std::size_t v = 0; v < one.weights.size(); ++v)
      EXPECT_THAT(many.weights[v],
                  ::testing::Pointwise(::testing::FloatNear(1e-3f), one.weights[v]));
  }
}

TEST(Training, RepeatsItselfBitByBit) {
  const Outcome first = train(2, 3), second = train(2, 3);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.weights, second.weights);
}

TEST(Training, CopiesNoWeightsAndNoGradientsOnceTheOrderIsKnown) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  const Sequential model(Dense(8, 16, {.activation = relu}), Dense(16, 4));
  optim::Adam optimizer;
  const auto step = [&] {
    GradientTape tape;
    const Tensor logits = model(ones({6, 8}));
    const Tensor labels = lockstep::zeros({6}, DType::i32);
    const Tensor loss = compute_average_loss(sparse_softmax_cross_entropy(labels, logits),
                                             {.global_batch_size = 12});
    optimizer.minimize(loss, model.trainable_variables(), tape);
  };
  strategy.run(step);
  const std::int64_t weights_before = update_copies();
  auto& gradients = telemetry::counter("lockstep_gradient_copied_bytes_total");
  const std::int64_t gradients_before = gradients.value();
  const std::int64_t allocated_before = memory_stats({DeviceKind::cpu, 1}).system_allocations;
  for (int i = 0; i < 5; ++i) strategy.run(step);
  EXPECT_EQ(update_copies(), weights_before);
  EXPECT_EQ(gradients.value(), gradients_before);
  EXPECT_EQ(memory_stats({DeviceKind::cpu, 1}).system_allocations, allocated_before);
}

TEST(DropoutInReplicas, S13_MasksDifferBetweenReplicasAndRepeat) {
  const auto masks_of = [] {
    const MirroredStrategy strategy = replicas(4, 7);
    const Dropout dropout(0.5);
    std::vector<std::vector<float>> masks;
    for (const Tensor& mask :
         strategy.run([&] { return dropout(lockstep::ones({1000}), {.training = true}); }))
      masks.push_back(mask.to_vector<float>());
    return masks;
  };
  const auto masks = masks_of();
  EXPECT_EQ(std::set(masks.begin(), masks.end()).size(), 4u);
  EXPECT_EQ(masks_of(), masks);
}

TEST(ModelsInScopes, StartEqualAlsoWhenMadeInAStep) {
  const MirroredStrategy strategy = replicas(3);
  {
    const auto scope = strategy.scope();
    const Dense layer(20, 30);
    lockstep::testing::require_equal_replicas(layer.variables());
    EXPECT_EQ(layer.kernel().local_values().size(), 3u);
  }
  std::vector<std::optional<Variable>> kernels(3);
  strategy.run([&] {
    kernels[static_cast<std::size_t>(get_replica_context()->replica_index())] =
        Dense(20, 30).kernel();
  });
  lockstep::testing::require_equal_replicas(std::vector{*kernels[0]});
  for (const auto& kernel : kernels) EXPECT_EQ(*kernel, *kernels[0]);
}

}  // namespace
}  // namespace lockstep::nn
