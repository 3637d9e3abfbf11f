// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/strategies.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::Noise;

class MixedTraining : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(MixedTraining);

// Images of four classes: noise, and a brighter quarter. The losses of some steps.
std::vector<double> losses(const Strategy& strategy, const PrecisionPolicy& policy) {
  constexpr std::int64_t rows = 16;
  Noise noise(3);
  std::vector<float> pixels = noise.tensor<float>({rows, 8, 8, 1}, 0.3).to_vector<float>();
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row) {
    labels.push_back(row % 4);
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 4; ++x)
        pixels[static_cast<std::size_t>((row * 8 + y + row % 4 / 2 * 4) * 8 + x + row % 2 * 4)] +=
            1;
  }
  const Tensor images({rows, 8, 8, 1}, std::span<const float>(pixels));
  const Tensor classes(Shape{rows}, std::span<const std::int64_t>(labels));
  const auto scope = strategy.scope();
  const PolicyScope precision(policy);
  RandomState random{.seed = 5};
  const RandomScope drawn(random);
  const Sequential model{Conv2D(1, 8, {.activation = relu}), MaxPool2D(), Flatten(),
                         Dense(72, 4, {.dtype = DType::f32})};
  optim::Adam optimizer({.learning_rate = 0.01});
  std::vector<double> result;
  for (int step = 0; step < 20; ++step) {
    const auto loss = strategy.run([&] {
      const ReplicaContext& context = *get_replica_context();
      const auto mine = rows_of_part(rows, context.num_replicas_in_sync(), context.replica_index());
      GradientTape tape;
      const Tensor mean = compute_average_loss(
          sparse_softmax_cross_entropy(slice_rows(classes, mine), model(slice_rows(images, mine))),
          {.global_batch_size = rows});
      optimizer.minimize(mean, model.trainable_variables(), tape);
      return mean;
    });
    result.push_back(strategy.reduce(ReduceOp::sum, loss).item<double>());
  }
  testing::require_equal_replicas(model.variables());
  for (const Variable& variable : model.variables()) EXPECT_EQ(variable.dtype(), DType::f32);
  return result;
}

TEST_P(MixedTraining, FollowsF32) {
  const std::vector<double> wide = losses(MirroredStrategy({.devices = {"CPU:0"}}), float32);
  EXPECT_LT(wide.back(), 0.5 * wide.front());
  for (const PrecisionPolicy policy : {mixed_bfloat16, mixed_float16})
    run(4, [&](const Strategy& strategy) {
      SCOPED_TRACE(policy.name());
      const std::vector<double> mixed = losses(strategy, policy);
      for (std::size_t step = 0; step < wide.size(); ++step)
        EXPECT_NEAR(mixed[step], wide[step], 0.02 * wide.front()) << "step " << step;
      EXPECT_NE(mixed, wide);
    });
}

// The cast back to f32 is the last op of a weight's gradient, and writes it where it is reduced.
TEST(MixedTrainingInPlace, CopiesNoGradientsAndNoWeights) {
  const MirroredStrategy strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  const PolicyScope precision(mixed_float16);
  const Sequential model(Dense(8, 16, {.activation = relu}), Dense(16, 4));
  optim::Adam adam;
  optim::LossScaleOptimizer optimizer(adam, {.initial_scale = 8});
  const auto step = [&] {
    GradientTape tape;
    const Tensor loss = sum(square(cast(model(lockstep::ones({6, 8})), DType::f32)));
    optimizer.minimize(loss, model.trainable_variables(), tape);
  };
  strategy.run(step);
  auto& gradients = telemetry::counter("lockstep_gradient_copied_bytes_total");
  const std::int64_t weights_before = update_copies(), gradients_before = gradients.value();
  for (int i = 0; i < 5; ++i) strategy.run(step);
  EXPECT_EQ(update_copies(), weights_before);
  EXPECT_EQ(gradients.value(), gradients_before);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 6);
}

}  // namespace
}  // namespace lockstep::nn
