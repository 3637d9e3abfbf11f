// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include "support/replicas.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::items;
using lockstep::testing::Noise;
using lockstep::testing::replica_index;
using lockstep::testing::vec;
using ::testing::DoubleNear;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr CallOptions kTraining{.training = true};
constexpr int kChannels = 3;

class BatchNormInReplicas : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return lockstep::testing::replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, BatchNormInReplicas,
                         ::testing::ValuesIn(lockstep::testing::kBothModes),
                         [](const auto& info) { return lockstep::testing::name_of(info.param); });

std::vector<float> joined(const PerReplica<Tensor>& parts) {
  std::vector<float> all;
  for (const Tensor& part : parts) {
    const auto values = part.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(BatchNormInReplicas, S07_SynchronizedStatisticsAreThoseOfAllRows) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const BatchNorm layer(1, {.momentum = 0.9, .synchronized = true});
  const auto y = strategy.run([&] {
    return layer(replica_index() == 0 ? Tensor({2, 1}, {1.0f, 3.0f}) : Tensor({2, 1}, {5.0f, 7.0f}),
                 kTraining);
  });
  EXPECT_THAT(joined(y), Pointwise(FloatNear(1e-5f), {-1.34151f, -0.44717f, 0.44717f, 1.34151f}));
  for (const Tensor& mean : layer.moving_mean().local_values())
    EXPECT_FLOAT_EQ(mean.item<float>(), 0.4f);
  for (const Tensor& variance : layer.moving_variance().local_values())
    EXPECT_FLOAT_EQ(variance.item<float>(), 1.4f);
}

TEST_P(BatchNormInReplicas, S07_LocalStatisticsAreTheReplicasOwn) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const BatchNorm layer(1, {.momentum = 0.9});
  const auto y = strategy.run([&] {
    return layer(replica_index() == 0 ? Tensor({2, 1}, {1.0f, 3.0f}) : Tensor({2, 1}, {5.0f, 7.0f}),
                 kTraining);
  });
  const float unit = 1 / std::sqrt(1.001f);
  EXPECT_THAT(joined(y), Pointwise(FloatNear(1e-5f), {-unit, unit, -unit, unit}));
  // Means 2 and 6, variances 1 and 1: a tenth of 4 and of 1, as TensorFlow's mean over replicas.
  EXPECT_FLOAT_EQ(layer.moving_mean().read().item<float>(), 0.4f);
  EXPECT_FLOAT_EQ(layer.moving_variance().read().item<float>(), 1);
  lockstep::testing::require_equal_replicas(layer.variables());
}

TEST_P(BatchNormInReplicas, LocalAveragesWeighReplicasByTheirRows) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  const BatchNorm layer(1, {.momentum = 0});
  strategy.run([&] {
    const Tensor rows[] = {Tensor({3, 1}, {0.0f, 3.0f, 6.0f}), Tensor({1, 1}, {11.0f}),
                           lockstep::zeros({0, 1})};
    return layer(rows[replica_index()], kTraining);
  });
  // Means 3 and 11, variances 6 and 0, of 3 and 1 rows.
  EXPECT_FLOAT_EQ(layer.moving_mean().read().item<float>(), 5);
  EXPECT_FLOAT_EQ(layer.moving_variance().read().item<float>(), 4.5f);
  lockstep::testing::require_equal_replicas(layer.variables());
}

// What one training call of a layer gives for these parts of a batch, one for each replica.
struct Outcome {
  std::vector<double> y, x_gradient, gamma_gradient, beta_gradient, moving_mean, moving_variance;
};

std::vector<double> doubles(const Tensor& x) { return x.to_vector<double>(); }
void append(std::vector<double>& all, const Tensor& part) {
  const auto values = doubles(part);
  all.insert(all.end(), values.begin(), values.end());
}

Outcome outcome_of(const Strategy& strategy, const std::vector<Tensor>& parts) {
  const auto scope = strategy.scope();
  const auto noise = [](std::uint64_t seed) -> Initializer {
    return [seed](const Shape& shape, DType) { return Noise(seed).tensor<double>(shape); };
  };
  const BatchNorm layer(kChannels, {.momentum = 0.7,
                                    .synchronized = true,
                                    .beta_initializer = noise(1),
                                    .gamma_initializer = noise(2),
                                    .dtype = DType::f64});
  const auto results = strategy.run([&] {
    const Tensor x = parts.at(static_cast<std::size_t>(replica_index()));
    GradientTape tape;
    tape.watch(x);
    const Tensor y = layer(x, kTraining);
    // Differs from row to row, so that the gradient through the statistics is not zero.
    const Tensor target = sum(square(y) * lockstep::sin(x * 3));
    const auto gradients = tape.gradient(target, {x, layer.gamma()->read(), layer.beta()->read()});
    ReplicaContext& replica = *get_replica_context();
    return std::vector<Tensor>{y, gradients[0], replica.all_reduce(ReduceOp::sum, gradients[1]),
                               replica.all_reduce(ReduceOp::sum, gradients[2])};
  });
  Outcome outcome;
  for (const auto& result : results) {
    append(outcome.y, result[0]);
    append(outcome.x_gradient, result[1]);
  }
  outcome.gamma_gradient = doubles(results[0][2]);
  outcome.beta_gradient = doubles(results[0][3]);
  outcome.moving_mean = doubles(layer.moving_mean().read());
  outcome.moving_variance = doubles(layer.moving_variance().read());
  lockstep::testing::require_equal_replicas(layer.variables());
  return outcome;
}

// Rows dealt as 5, 1, 0 and 2, and the same rows on one replica.
TEST_P(BatchNormInReplicas, SynchronizedEqualsOneReplicaWithAllRows) {
  const Tensor all = Noise(5).tensor<double>({8, 2, kChannels}, 4);
  std::vector<Tensor> parts = split(all, std::vector<std::int64_t>{5, 1, 0, 2}, 0);
  const Outcome many = outcome_of(make(4), parts);
  const Outcome one = outcome_of(make(1), {all});
  const auto expect_same = [](const std::vector<double>& a, const std::vector<double>& b) {
    EXPECT_THAT(a, Pointwise(DoubleNear(1e-10), b));
  };
  expect_same(many.y, one.y);
  expect_same(many.x_gradient, one.x_gradient);
  expect_same(many.gamma_gradient, one.gamma_gradient);
  expect_same(many.beta_gradient, one.beta_gradient);
  expect_same(many.moving_mean, one.moving_mean);
  expect_same(many.moving_variance, one.moving_variance);
}

TEST_P(BatchNormInReplicas, AStepWithoutRowsLeavesItsAverages) {
  const auto strategy = make(2);
  for (const bool synchronized : {false, true}) {
    const auto scope = strategy.scope();
    const BatchNorm layer(2, {.momentum = 0.5, .synchronized = synchronized});
    const auto y = strategy.run([&] { return layer(lockstep::zeros({0, 2}), kTraining); });
    EXPECT_EQ(y[1].shape(), Shape({0, 2}));
    EXPECT_EQ(layer.moving_mean().read().to_vector<float>(), (std::vector<float>{0, 0}));
    EXPECT_EQ(layer.moving_variance().read().to_vector<float>(), (std::vector<float>{1, 1}));
  }
}

TEST_P(BatchNormInReplicas, RecomputingMovesItsAveragesOnce) {
  const auto strategy = make(2);
  for (const bool synchronized : {false, true}) {
    const auto averages = [&](auto way) {
      const auto scope = strategy.scope();
      const Sequential model{Dense(2, 3, {.kernel_initializer = ones}),
                             BatchNorm(3, {.momentum = 0.5, .synchronized = synchronized})};
      strategy.run([&] {
        GradientTape tape;
        const Tensor x = Noise(7).tensor<float>({4, 2}) * (replica_index() + 1.0);
        const auto block = way([&](const Tensor& input) { return model(input, kTraining); });
        (void)tape.gradient(sum(square(block(x)) * Noise(8).tensor<float>({4, 3})),
                            model.trainable_variables());
      });
      return model.variables().back().read().to_vector<float>();
    };
    EXPECT_EQ(averages([](auto block) { return recompute(block); }),
              averages([](auto block) { return block; }));
  }
}

// ---- programs for TPUs

struct Row {
  Tensor x;
};

struct Fitted {
  std::vector<double> losses;
  std::vector<std::vector<float>> variables;
};

// 10 rows in batches of 4: the last has 2 rows, which two replicas of four do not see.
Fitted fitted(const Strategy& strategy, bool synchronized) {
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Row{Noise(9).tensor<float>({10, 2, kChannels}, 3)})
          .batch(4)
          .repeat(2));
  const auto scope = strategy.scope();
  const auto noise = [](std::uint64_t seed) -> Initializer {
    return [seed](const Shape& shape, DType) { return Noise(seed).tensor<float>(shape); };
  };
  const Sequential model{Dense(kChannels, 4, {.kernel_initializer = noise(1)}),
                         BatchNorm(4, {.momentum = 0.8, .synchronized = synchronized}), tanh,
                         Dense(4, 2, {.kernel_initializer = noise(2)})};
  optim::SGD optimizer({.learning_rate = 0.1});
  Fitted result;
  for (const auto& batch : batches) {
    const auto loss = strategy.run(
        [&](const Row& row) {
          GradientTape tape;
          const Tensor part = compute_average_loss(square(model(row.x, kTraining) - 1));
          optimizer.minimize(part, model.trainable_variables(), tape);
          return part;
        },
        batch);
    result.losses.push_back(strategy.reduce(ReduceOp::sum, loss).item<double>());
  }
  lockstep::testing::require_equal_replicas(model.variables());
  for (const Variable& variable : model.variables())
    result.variables.push_back(Tensor(variable).to_vector<float>());
  return result;
}

TEST(BatchNormXla, LeavesPaddingOutAsMirroredReplicasDo) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (const bool synchronized : {false, true}) {
    const Fitted expected = fitted(lockstep::testing::replicas(4), synchronized);
    const Fitted got = fitted(TPUStrategy({.replicas = 4}), synchronized);
    EXPECT_THAT(got.losses, Pointwise(DoubleNear(1e-4), expected.losses));
    ASSERT_EQ(got.variables.size(), expected.variables.size());
    for (std::size_t v = 0; v < got.variables.size(); ++v)
      EXPECT_THAT(got.variables[v], Pointwise(FloatNear(1e-4f), expected.variables[v])) << v;
  }
}

}  // namespace
}  // namespace lockstep::nn
