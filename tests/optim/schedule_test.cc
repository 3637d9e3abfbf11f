// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lockstep/optim/schedule.h>

#include <cmath>

namespace lockstep::optim {
namespace {

double rate_at(const Schedule& schedule, std::int64_t step) {
  return schedule(Tensor(step)).item<double>();
}

TEST(ExponentialDecay, DecaysOnceInDecaySteps) {
  const Schedule schedule = exponential_decay(0.5, {.decay_rate = 0.25, .decay_steps = 10});
  EXPECT_DOUBLE_EQ(rate_at(schedule, 0), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 5), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 10), 0.125);
  const Schedule stairs =
      exponential_decay(0.5, {.decay_rate = 0.25, .decay_steps = 10, .staircase = true});
  EXPECT_DOUBLE_EQ(rate_at(stairs, 9), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(stairs, 19), 0.125);
  EXPECT_THROW(exponential_decay(0.5, {.decay_steps = 0}), InvalidArgument);
}

TEST(CosineDecay, FollowsHalfACosineAfterTheWarmUp) {
  const Schedule schedule = cosine_decay(2, {.decay_steps = 100, .alpha = 0.1, .warmup_steps = 10});
  EXPECT_DOUBLE_EQ(rate_at(schedule, 0), 0);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 5), 1);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 10), 2);
  for (const int step : {20, 35, 60, 109}) {
    const double cosine = 0.5 * (1 + std::cos(M_PI * (step - 10) / 100));
    EXPECT_NEAR(rate_at(schedule, step), 2 * (0.1 + 0.9 * cosine), 1e-14);
  }
  EXPECT_NEAR(rate_at(schedule, 1000), 0.2, 1e-15);
  EXPECT_DOUBLE_EQ(rate_at(cosine_decay(2), 0), 2);
  EXPECT_THROW(cosine_decay(2, {.warmup_steps = -1}), InvalidArgument);
}

TEST(PiecewiseConstant, HoldsAValueUpToAndWithItsBoundary) {
  const Schedule schedule = piecewise_constant({100, 200}, {1, 0.5, 0.25});
  EXPECT_EQ(rate_at(schedule, 0), 1);
  EXPECT_EQ(rate_at(schedule, 100), 1);
  EXPECT_EQ(rate_at(schedule, 101), 0.5);
  EXPECT_EQ(rate_at(schedule, 200), 0.5);
  EXPECT_EQ(rate_at(schedule, 201), 0.25);
  EXPECT_THROW(piecewise_constant({100}, {1}), InvalidArgument);
  EXPECT_THROW(piecewise_constant({200, 100}, {1, 2, 3}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::optim
