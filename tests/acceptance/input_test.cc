// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "support/replicas.h"
#include "support/sanitizers.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::name_of;
using lockstep::testing::replicas;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Input : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, Input, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Input, S20_InfiniteDataAndAnEarlyExit) {
  constexpr int kGlobalBatchSize = 4, kSteps = 5, kPrefetch = 8;
  std::atomic<int> calls{0};
  Clock::time_point broke;
  {
    const auto strategy = replicas(2, GetParam());
    const auto batches = strategy.distribute_dataset(data::from_generator([&calls] {
                                                       return [&calls]() -> std::optional<Tensor> {
                                                         return Tensor(static_cast<float>(calls++));
                                                       };
                                                     })
                                                         .batch(kGlobalBatchSize)
                                                         .prefetch(kPrefetch));
    int steps = 0;
    for (const auto& batch : batches) {
      strategy.run([](const Tensor& x) { EXPECT_EQ(x.dim(0), kGlobalBatchSize / 2); }, batch);
      if (++steps == kSteps) break;
    }
    broke = Clock::now();
  }
  EXPECT_LT(Seconds(Clock::now() - broke).count(), 2);
  EXPECT_LE(calls, (kSteps + kPrefetch + 1) * kGlobalBatchSize);
}

// Where the steps of a small training loop spend their time, each batch of which takes `delay` to read.
telemetry::StepReport step_times(std::chrono::milliseconds delay, int steps) {
  const auto strategy = replicas(2);
  const auto batches =
      strategy.distribute_dataset(data::range(8 * steps).batch(8).map([delay](const Tensor& x) {
        std::this_thread::sleep_for(delay);
        return reshape(cast(x, DType::f32), {-1, 1});
      }));
  const auto scope = strategy.scope();
  const nn::Dense dense(1, 256);
  optim::SGD sgd({.learning_rate = 1e-6});
  for (const auto& batch : batches)
    strategy.run(
        [&](const Tensor& x) {
          GradientTape tape;
          const Tensor loss = nn::compute_average_loss(mean(square(dense(x)), {.axes = {1}}));
          sgd.minimize(loss, dense.trainable_variables(), tape);
        },
        batch);
  return strategy.step_report();
}

// How much of the total the phases leave out.
double left_out(const telemetry::StepReport& report) {
  const double phases = report.input + report.compute + report.communication + report.update;
  return std::abs(report.total - phases) / report.total;
}

TEST(StepTimes, S30_Breakdown) {
  if (testing::kSanitized) GTEST_SKIP() << "times are the sanitizer's";
  constexpr int kSteps = 200;
  double most_left_out = 1, more_input = 1;
  // On a busy machine sleeps overshoot, and the caller may be stopped between two steps.
  for (int attempt = 0; attempt < 3 && (most_left_out > 0.1 || more_input > 0.030); ++attempt) {
    const auto quick = step_times(std::chrono::milliseconds(0), kSteps);
    const auto slow = step_times(std::chrono::milliseconds(20), kSteps);
    EXPECT_EQ(quick.steps, kSteps);
    most_left_out = std::max(left_out(quick), left_out(slow));
    more_input = (slow.input - quick.input) / kSteps;
    EXPECT_GT(more_input, 0.015);
  }
  EXPECT_LT(most_left_out, 0.1);
  EXPECT_LT(more_input, 0.030);
}

}  // namespace
}  // namespace lockstep
