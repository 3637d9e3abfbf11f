// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lockstep/optim/schedule.h>

#include <cmath>

#include "support/replicas.h"

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

TEST(PolynomialDecay, EndsWhereItSaysUnlessItCycles) {
  const Schedule once =
      polynomial_decay(1, {.decay_steps = 10, .end_learning_rate = 0.25, .power = 2});
  EXPECT_DOUBLE_EQ(rate_at(once, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at(once, 5), 0.75 * 0.25 + 0.25);
  EXPECT_DOUBLE_EQ(rate_at(once, 10), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(once, 1000), 0.25);
  const Schedule cycling =
      polynomial_decay(1, {.decay_steps = 10, .end_learning_rate = 0, .cycle = true});
  EXPECT_DOUBLE_EQ(rate_at(cycling, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at(cycling, 10), 0);
  EXPECT_DOUBLE_EQ(rate_at(cycling, 15), 0.25);  // 15 of 20
  EXPECT_THROW(polynomial_decay(1, {.decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(polynomial_decay(1, {.power = -1}), InvalidArgument);
}

TEST(InverseTimeDecay, DividesByTheTime) {
  const Schedule schedule = inverse_time_decay(6, {.decay_rate = 0.5, .decay_steps = 10});
  EXPECT_DOUBLE_EQ(rate_at(schedule, 0), 6);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 20), 3);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 40), 2);
  EXPECT_THROW(inverse_time_decay(6, {.decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(inverse_time_decay(6, {.decay_rate = -1}), InvalidArgument);
}

// Also at the very steps where a period begins, which a rounded logarithm may miss.
TEST(CosineDecayRestarts, StartsAgainInEveryPeriod) {
  for (const double t_mul : {2.0, 3.0}) {
    const Schedule schedule =
        cosine_decay_restarts(8, {.first_decay_steps = 10, .t_mul = t_mul, .m_mul = 0.5});
    double begin = 0, length = 10, height = 8;
    for (int period = 0; period < 6; ++period) {
      EXPECT_NEAR(rate_at(schedule, static_cast<std::int64_t>(begin)), height, 1e-9 * height);
      EXPECT_NEAR(rate_at(schedule, static_cast<std::int64_t>(begin + length / 2)), height / 2,
                  1e-9 * height);
      begin += length;
      length *= t_mul;
      height /= 2;
    }
  }
  EXPECT_THROW(cosine_decay_restarts(8, {.first_decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(cosine_decay_restarts(8, {.t_mul = 0.5}), InvalidArgument);
}

TEST(LinearWarmup, LeadsToANumberOrASchedule) {
  const Schedule to_number = linear_warmup(2, {.warmup_steps = 10, .initial = 1});
  EXPECT_DOUBLE_EQ(rate_at(to_number, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at(to_number, 5), 1.5);
  EXPECT_DOUBLE_EQ(rate_at(to_number, 10), 2);
  EXPECT_DOUBLE_EQ(rate_at(to_number, 99), 2);
  const Schedule decay = exponential_decay(2, {.decay_rate = 0.25, .decay_steps = 10});
  const Schedule to_schedule = linear_warmup(decay, {.warmup_steps = 4});
  EXPECT_DOUBLE_EQ(rate_at(to_schedule, 0), 0);
  EXPECT_DOUBLE_EQ(rate_at(to_schedule, 3), 1.5);
  EXPECT_DOUBLE_EQ(rate_at(to_schedule, 4), 2);
  EXPECT_DOUBLE_EQ(rate_at(to_schedule, 14), 0.5);
  EXPECT_THROW(linear_warmup(2, {.warmup_steps = 0}), InvalidArgument);
}

TEST(OneCycle, RisesAndFalls) {
  for (const Anneal anneal : {Anneal::cosine, Anneal::linear}) {
    const Schedule schedule = one_cycle(1, {.total_steps = 101,
                                            .warmup_fraction = 41.0 / 101,
                                            .anneal = anneal,
                                            .div_factor = 10,
                                            .final_div_factor = 5});
    EXPECT_NEAR(rate_at(schedule, 0), 0.1, 1e-15);
    EXPECT_NEAR(rate_at(schedule, 20), 0.55, 1e-12);  // both are halfway there
    EXPECT_NEAR(rate_at(schedule, 40), 1, 1e-12);
    EXPECT_NEAR(rate_at(schedule, 70), 0.51, 1e-12);
    EXPECT_NEAR(rate_at(schedule, 100), 0.02, 1e-12);
    EXPECT_NEAR(rate_at(schedule, 1000), 0.02, 1e-12);
  }
  EXPECT_THROW(one_cycle(1, {.total_steps = 3}), InvalidArgument);
  EXPECT_THROW(one_cycle(1, {.warmup_fraction = 1}), InvalidArgument);
  EXPECT_THROW(one_cycle(1, {.div_factor = 0}), InvalidArgument);
}

TEST(ScaleByReplicas, GrowsWithThemInTheScope) {
  const Schedule decay = exponential_decay(2, {.decay_rate = 0.25, .decay_steps = 10});
  EXPECT_EQ(*scale_by_replicas(0.5).number(), 0.5);
  const MirroredStrategy strategy = testing::replicas(4);
  const auto scope = strategy.scope();
  EXPECT_EQ(*scale_by_replicas(0.5).number(), 2);
  EXPECT_EQ(*scale_by_replicas(0.5, ReplicaScaling::square_root).number(), 1);
  const LearningRate scaled = scale_by_replicas(decay);
  ASSERT_TRUE(scaled.schedule());
  EXPECT_DOUBLE_EQ(rate_at(*scaled.schedule(), 0), 8);
  EXPECT_DOUBLE_EQ(rate_at(*scaled.schedule(), 10), 2);
}

}  // namespace
}  // namespace lockstep::optim
