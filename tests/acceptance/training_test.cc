// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cmath>

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
using ::testing::ElementsAre;

// The shared problem: one weight w = 2, no bias, the loss of an example is (w x - 1)^2, SGD with rate
// 0.1. For x = 1, 2, 3, 4 losses are 1, 9, 25, 49 and gradients 2, 12, 30, 56.
struct Problem {
  Variable w{Tensor(2.0f), {.name = "w"}};
  optim::SGD sgd{{.learning_rate = 0.1}};

  // One step; the mean loss over the global batch.
  double step(const Strategy& strategy, const PerReplica<Tensor>& batch,
              const nn::AverageLossOptions& divisor = {}) {
    const auto losses = strategy.run(
        [&](const Tensor& x) {
          GradientTape tape;
          const Tensor loss = nn::compute_average_loss(square(w * x - 1), divisor);
          sgd.minimize(loss, {w}, tape);
          return loss;
        },
        batch);
    return strategy.reduce(ReduceOp::sum, losses).item<double>();
  }
};

class Training : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, Training, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Training, S01_GlobalBatchScaling) {
  for (const int count : {1, 2, 4}) {
    const auto strategy = make(count);
    const auto batches =
        strategy.distribute_dataset(data::from_tensor_slices(vec({1, 2, 3, 4})).batch(4));
    const auto scope = strategy.scope();
    Problem problem;
    int steps = 0;
    for (const auto& batch : batches) {
      ++steps;
      EXPECT_NEAR(problem.step(strategy, batch), 21, 21e-6) << count << " replicas";
    }
    EXPECT_EQ(steps, 1);
    // 0.75 would be averaged twice, -3 divided by each replica's own count.
    EXPECT_THAT(items(problem.w.local_values()), Each(DoubleNear(-0.5, 1e-6)));
    EXPECT_EQ(problem.w.local_values().size(), static_cast<std::size_t>(count));
  }
}

TEST_P(Training, S01_TheLongForm) {
  for (const int count : {1, 2, 4}) {
    const auto strategy = make(count);
    const auto batches =
        strategy.distribute_dataset(data::from_tensor_slices(vec({1, 2, 3, 4})).batch(4));
    const auto scope = strategy.scope();
    Problem problem;
    for (const auto& batch : batches)
      strategy.run(
          [&](const Tensor& x) {
            GradientTape tape;
            const Tensor loss = nn::compute_average_loss(square(problem.w * x - 1));
            const auto gradients = tape.gradient(loss, {problem.w});
            problem.sgd.apply_gradients(gradients, std::vector{problem.w});
          },
          batch);
    EXPECT_THAT(items(problem.w.local_values()), Each(DoubleNear(-0.5, 1e-6)));
  }
}

TEST(WithoutAStrategy, S01_IsTheSameProgram) {
  Problem problem;
  GradientTape tape;
  const Tensor loss = nn::compute_average_loss(square(problem.w * vec({1, 2, 3, 4}) - 1));
  problem.sgd.minimize(loss, {problem.w}, tape);
  EXPECT_NEAR(loss.item<double>(), 21, 21e-6);
  EXPECT_NEAR(problem.w.read().item<double>(), -0.5, 1e-6);
}

// Ten examples, global batches of four, four replicas: the last step has two examples and two
// replicas without any. Returns the weight after that step, which starts from 2.
double last_partial_step(const Strategy& strategy, const nn::AverageLossOptions& divisor,
                         double expected_loss) {
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(vec({3, 4, 5, 6, 7, 8, 9, 10, 1, 2})).batch(4));
  const auto scope = strategy.scope();
  Problem problem;
  int steps = 0;
  for (const auto& batch : batches) {
    if (++steps < 3) continue;
    EXPECT_THAT(batch.rows()->local, ElementsAre(1, 1, 0, 0));
    EXPECT_EQ(batch.rows()->global, 2);
    EXPECT_NEAR(problem.step(strategy, batch, divisor), expected_loss, 1e-6);
  }
  EXPECT_EQ(steps, 3);
  for (const double weight : items(problem.w.local_values())) EXPECT_FALSE(std::isnan(weight));
  testing::require_equal_replicas(std::vector{problem.w});
  return problem.w.read().item<double>();
}

TEST_P(Training, S02_PartialBatchDividedByItsActualCount) {
  // The default: the gradient is (2 + 12) / 2 = 7.
  EXPECT_NEAR(last_partial_step(make(4), {}, (1 + 9) / 2.0), 2 - 0.1 * 7.0, 1e-6);
}

TEST_P(Training, S02_PartialBatchDividedByAFixedCount) {
  // (2 + 12) / 4 = 3.5
  EXPECT_NEAR(last_partial_step(make(4), {.global_batch_size = 4}, (1 + 9) / 4.0), 2 - 0.1 * 3.5,
              1e-6);
}

TEST_P(Training, S02_EveryStepOfThePartialEpochIsFinite) {
  const auto strategy = make(4);
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(vec({.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1})).batch(4));
  const auto scope = strategy.scope();
  Problem problem;
  int steps = 0;
  for (const auto& batch : batches) {
    ++steps;
    EXPECT_TRUE(std::isfinite(problem.step(strategy, batch)));
    testing::require_equal_replicas(std::vector{problem.w});
    EXPECT_TRUE(std::isfinite(problem.w.read().item<double>()));
  }
  EXPECT_EQ(steps, 3);
}

// a is used by both replicas, b by replica 0 alone, c by none.
class UnusedVariables : public ::testing::TestWithParam<std::tuple<ReplicaThreads, std::int64_t>> {
 protected:
  // Bytes of a bucket: 1 gives each variable a bucket of its own, a MiB all three the same.
  const MirroredStrategy strategy{{.devices = testing::cpus(2),
                                   .replica_threads = std::get<0>(GetParam()),
                                   .communication = {.bytes_per_pack = std::get<1>(GetParam())}}};
  const Strategy::Scope scope = strategy.scope();
  const std::vector<Variable> variables{Variable(vec({1, 1}), {.name = "a"}),
                                        Variable(vec({1, 1}), {.name = "b"}),
                                        Variable(vec({1, 1}), {.name = "c"})};
  const Variable &a = variables[0], &b = variables[1], &c = variables[2];

  // Replica 0 uses a and then b, replica 1 only a; gradients of a are g0 and g1, of b is g.
  void step(optim::Optimizer& optimizer, double g0, double g1, double g) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = replica_index() == 0 ? sum(a * g0) + sum(b * g) : sum(a * g1);
      optimizer.minimize(loss, variables, tape);
    });
  }
  static void expect(const Variable& variable, float value) {
    for (const Tensor& component : variable.local_values())
      EXPECT_THAT(component, holds({value, value})) << variable.name();
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, UnusedVariables,
                         ::testing::Combine(::testing::ValuesIn(testing::kBothModes),
                                            ::testing::Values(1, 1 << 20)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == 1 ? "_in_buckets_of_their_own"
                                                                : "_in_one_bucket");
                         });

TEST_P(UnusedVariables, S40_SgdWithMomentum) {
  optim::SGD sgd({.learning_rate = 0.5, .momentum = 0.5});
  sgd.build(variables);
  for (int i = 0; i < 2; ++i) sgd.slot(c, "velocity").set_local_value(i, vec({7, 7}));
  step(sgd, 3, 4, 5);
  // velocity = -0.5 g, w += velocity: a has 3 + 4, b replica 0's 5 alone.
  expect(a, 1 - 3.5);
  expect(b, 1 - 2.5);
  expect(sgd.slot(b, "velocity"), -2.5);
  step(sgd, 2, 4, 8);
  // a: velocity 0.5 * -3.5 - 0.5 * 6; b: 0.5 * -2.5 - 0.5 * 8.
  expect(a, -2.5f - 4.75f);
  expect(b, -1.5f - 5.25f);
  strategy.run([&] {  // replica 1 uses the same two in the other order
    GradientTape tape;
    Tensor loss = replica_index() == 0 ? sum(a * 2) : sum(b * 6);
    loss = loss + (replica_index() == 0 ? sum(b * 2) : sum(a * 4));
    sgd.minimize(loss, variables, tape);
  });
  // a: velocity 0.5 * -4.75 - 0.5 * 6; b: 0.5 * -5.25 - 0.5 * 8.
  expect(a, -7.25f - 5.375f);
  expect(b, -6.75f - 6.625f);
  expect(c, 1);
  expect(sgd.slot(c, "velocity"), 7);
}

TEST_P(UnusedVariables, S40_Adam) {
  optim::Adam adam({.learning_rate = 0.125, .beta_1 = 0.5, .beta_2 = 0.75, .epsilon = 0});
  adam.build(variables);
  adam.slot(c, "m").assign(vec({7, 7}));
  adam.slot(c, "v").assign(vec({8, 8}));
  step(adam, 3, 5, 2);
  // m = 0.5 g, v = 0.25 g^2; the first step is the learning rate against the gradient's sign.
  expect(a, 1 - 0.125);
  expect(b, 1 - 0.125);
  expect(adam.slot(a, "m"), 4);
  expect(adam.slot(a, "v"), 16);
  expect(adam.slot(b, "m"), 1);
  expect(adam.slot(b, "v"), 1);
  step(adam, 1, 1, 4);
  expect(adam.slot(a, "m"), 0.5 * 4 + 0.5 * 2);
  expect(adam.slot(a, "v"), 0.75 * 16 + 0.25 * 4);
  expect(adam.slot(b, "m"), 0.5 * 1 + 0.5 * 4);
  expect(adam.slot(b, "v"), 0.75 * 1 + 0.25 * 16);
  expect(c, 1);
  expect(adam.slot(c, "m"), 7);
  expect(adam.slot(c, "v"), 8);
  testing::require_equal_replicas(variables);
}

}  // namespace
}  // namespace lockstep
