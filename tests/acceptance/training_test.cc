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

// a is used by both replicas, b by replica 0 alone (in the second run by both, in the other order), c by
// none.
class UnusedVariables : public Training {
 protected:
  void check(std::int64_t bytes_per_pack);
};
INSTANTIATE_TEST_SUITE_P(Modes, UnusedVariables, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(UnusedVariables, S40_InBucketsOfTheirOwn) { check(1); }
TEST_P(UnusedVariables, S40_InOneBucket) { check(0); }

void UnusedVariables::check(std::int64_t bytes_per_pack) {
  const MirroredStrategy strategy({.devices = testing::cpus(2),
                                   .replica_threads = GetParam(),
                                   .communication = {.bytes_per_pack = bytes_per_pack}});
  const auto scope = strategy.scope();
  const std::vector<Variable> variables{Variable(vec({1, 1}), {.name = "a"}),
                                        Variable(vec({1, 1}), {.name = "b"}),
                                        Variable(vec({1, 1}), {.name = "c"})};
  const auto& [a, b, c] = std::tie(variables[0], variables[1], variables[2]);
  optim::SGD sgd({.learning_rate = 0.5, .momentum = 0.5});
  sgd.build(variables);
  sgd.slot(c, "velocity").assign(vec({7, 8}));
  strategy.run([&] {
    GradientTape tape;
    const bool first = replica_index() == 0;
    const Tensor loss = first ? sum(a * 3) + sum(b * 5) : sum(a * 4);
    sgd.minimize(loss, variables, tape);
  });
  // velocity = -0.5 g, w += velocity: a has 3 + 4, b replica 0's 5 alone.
  for (const Tensor& value : a.local_values()) EXPECT_THAT(value, holds({1 - 3.5, 1 - 3.5}));
  for (const Tensor& value : b.local_values()) EXPECT_THAT(value, holds({1 - 2.5, 1 - 2.5}));
  for (const Tensor& value : c.local_values()) EXPECT_THAT(value, holds({1, 1}));
  for (const Tensor& value : sgd.slot(b, "velocity").local_values())
    EXPECT_THAT(value, holds({-2.5, -2.5}));
  for (const Tensor& value : sgd.slot(c, "velocity").local_values())
    EXPECT_THAT(value, holds({7, 8}));

  strategy.run([&] {
    GradientTape tape;
    Tensor loss;
    if (replica_index() == 0) {
      loss = sum(a * 2);
      loss = loss + sum(b * 2);
    } else {
      loss = sum(b * 6);
      loss = loss + sum(a * 4);
    }
    sgd.minimize(loss, variables, tape);
  });
  // a: velocity 0.5 * -3.5 - 0.5 * 6; b: 0.5 * -2.5 - 0.5 * 8.
  for (const Tensor& value : a.local_values()) EXPECT_THAT(value, holds({-7.25, -7.25}));
  for (const Tensor& value : b.local_values()) EXPECT_THAT(value, holds({-6.75, -6.75}));
  for (const Tensor& value : c.local_values()) EXPECT_THAT(value, holds({1, 1}));
  for (const Tensor& value : sgd.slot(c, "velocity").local_values())
    EXPECT_THAT(value, holds({7, 8}));
}

}  // namespace
}  // namespace lockstep
