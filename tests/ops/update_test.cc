// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

#include "ops/every_isa.h"
#include "ops/update_list.h"
#include "support/errors.h"
#include "support/update_rows.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

using State = std::vector<Tensor>;

// How far one rounding to a dtype is from the formula, relative and of numbers near 0.
struct Precision {
  DType dtype;
  double relative, absolute;
};
constexpr Precision kPrecisions[] = {{DType::f64, 1e-14, 1e-300},
                                     {DType::f32, 2e-6, 1e-30},
                                     {DType::f16, 1e-3, 1e-7},
                                     {DType::bf16, 8e-3, 1e-30}};

// One update from `state` by the formula.
std::vector<Doubles> expected_update(const UpdateRow& row, const State& state,
                                     const Tensor& gradient, double rate, int t, double decay,
                                     double scale) {
  std::vector<Doubles> expected;
  for (const Tensor& x : state) expected.push_back(doubles_of(x));
  Doubles g = doubles_of(gradient);
  for (double& x : g) x *= scale;
  update_by_formula(row, expected, g, rate, t, decay);
  return expected;
}

// What an update changes is rounded once, so is as near to the formula as its dtype allows.
void expect_rounded_once(const State& actual, const State& before,
                         const std::vector<Doubles>& expected, const Precision& precision,
                         double terms) {
  for (std::size_t k = 0; k < actual.size(); ++k) {
    ASSERT_EQ(actual[k].dtype(), precision.dtype);
    const Doubles values = doubles_of(actual[k]), old = doubles_of(before[k]);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[k][i],
                  precision.relative * (std::abs(expected[k][i]) + std::abs(old[i]) + terms) +
                      precision.absolute)
          << "state " << k << " element " << i;
  }
}

class UpdateRules : public ::testing::TestWithParam<UpdateRow> {};
INSTANTIATE_TEST_SUITE_P(Rules, UpdateRules, ::testing::ValuesIn(update_rows()),
                         [](const auto& info) { return info.param.name; });

TEST_P(UpdateRules, FollowTheFormula) {
  const UpdateRow& row = GetParam();
  for (const Precision& precision : kPrecisions)
    for (const std::int64_t n : {1, 13, 1500}) {
      SCOPED_TRACE(std::string(name_of(precision.dtype)) + " of " + std::to_string(n));
      Noise noise(1);
      State state = update_start(row.rule, cast(noise.tensor<double>({n}), precision.dtype));
      for (int t = 1; t <= 5; ++t) {
        const Tensor gradient = cast(noise.tensor<double>({n}), precision.dtype);
        UpdateStep step = update_step(0.1 / t, t, 0.1);
        step.gradient_scale = Tensor(0.5);
        const State before = state;
        apply_update(row.rule, state, gradient, step);
        expect_rounded_once(state, before,
                            expected_update(row, before, gradient, 0.1 / t, t, 0.1, 0.5), precision,
                            row.terms);
      }
    }
}

TEST_P(UpdateRules, StayWithTheFormulaInDouble) {
  const UpdateRow& row = GetParam();
  Noise noise(2);
  State state = update_start(row.rule, noise.tensor<double>({40}));
  std::vector<Doubles> expected;
  for (const Tensor& x : state) expected.push_back(doubles_of(x));
  for (int t = 1; t <= 50; ++t) {
    const Tensor gradient = noise.tensor<double>({40});
    apply_update(row.rule, state, gradient, update_step(0.01, t, 0.1));
    update_by_formula(row, expected, doubles_of(gradient), 0.01, t, 0.1);
  }
  for (std::size_t k = 0; k < state.size(); ++k)
    for (std::size_t i = 0; i < 40; ++i)
      EXPECT_NEAR(state[k].data<double>()[i], expected[k][i],
                  1e-11 * (1 + std::abs(expected[k][i])))
          << "state " << k;
}

TEST_P(UpdateRules, GiveTheSameBitsOnEveryIsa) {
  const UpdateRow& row = GetParam();
  const IsaGuard guard;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::vector<Doubles>> results;
    for (const Isa isa : runnable_isas()) {
      set_isa(isa);
      Noise noise(3);
      State state = update_start(row.rule, cast(noise.tensor<double>({1517}), dtype));
      for (int t = 1; t <= 3; ++t)
        apply_update(row.rule, state, cast(noise.tensor<double>({1517}), dtype),
                     update_step(0.01, t, 0.1));
      results.emplace_back();
      for (const Tensor& x : state) results.back().push_back(doubles_of(x));
    }
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << name_of(dtype);
  }
}

TEST_P(UpdateRules, OverwriteWhatNobodyElseHolds) {
  const UpdateRow& row = GetParam();
  State state = update_start(row.rule, full({1000}, 3));
  std::vector<const void*> places, now;
  for (const Tensor& x : state) places.push_back(x.raw_data());
  const std::int64_t copies = update_copies();
  for (int t = 1; t <= 3; ++t) apply_update(row.rule, state, ones({1000}), update_step(0.1, t));
  for (const Tensor& x : state) now.push_back(x.raw_data());
  EXPECT_EQ(now, places);
  EXPECT_EQ(update_copies(), copies);
  for (const Tensor& x : state) EXPECT_TRUE(x.unique());
}

// Rows without gradient may be left alone exactly where a gradient of zero does that.
TEST_P(UpdateRules, SayWhetherTheyUpdateByRows) {
  const UpdateRule& rule = GetParam().rule;
  Noise noise(4);
  State state = update_start(rule, noise.tensor<double>({7}));
  for (int t = 1; t <= 2; ++t)
    apply_update(rule, state, noise.tensor<double>({7}), update_step(0.1, t));
  std::vector<Doubles> before, after;
  for (const Tensor& x : state) before.push_back(doubles_of(x));
  apply_update(rule, state, zeros({7}, DType::f64), update_step(0.1, 3));
  for (const Tensor& x : state) after.push_back(doubles_of(x));
  EXPECT_EQ(updates_by_rows(rule), before == after);
}

TEST_P(UpdateRules, GiveRowsTheBitsOfAllRowsOrRefuseThem) {
  const UpdateRule& rule = GetParam().rule;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    Noise noise(5);
    const Tensor start = cast(noise.tensor<double>({40, 3}), dtype);
    State by_rows = update_start(rule, copy_to(start, Device{})),
          dense = update_start(rule, copy_to(start, Device{}));
    std::vector<const void*> places;
    for (const Tensor& x : by_rows) places.push_back(x.raw_data());
    for (int t = 1; t <= 2; ++t) {
      const IndexedSlices gradient{cast(noise.tensor<double>({3, 3}), dtype),
                                   vec<std::int64_t>({0, 17, 38 + t - 1}), start.shape()};
      UpdateStep step = update_step(0.1, t);
      step.gradient_scale = Tensor(0.5);
      apply_update(rule, dense, to_dense(gradient), step);
      step.rows = gradient.indices;
      if (!updates_by_rows(rule)) {
        EXPECT_THAT([&] { apply_update(rule, by_rows, gradient.values, step); },
                    throws<InvalidArgument>("[apply_update]", "all rows", "rule"));
        continue;
      }
      apply_update(rule, by_rows, gradient.values, step);
      for (std::size_t k = 0; k < dense.size(); ++k) {
        EXPECT_EQ(doubles_of(by_rows[k]), doubles_of(dense[k])) << name_of(dtype) << " state " << k;
        EXPECT_EQ(by_rows[k].raw_data(), places[k]);
      }
    }
  }
}

TEST(Update, RefusesRowsThatDoNotFit) {
  const auto refused = [](const Tensor& gradient, const Tensor& rows, double decay = 0) {
    return [=] {
      State state{ones({4, 2})};
      UpdateStep step = update_step(0.1, 1, decay);
      step.rows = rows;
      apply_update(SgdRule{}, state, gradient, step);
    };
  };
  const Tensor two = vec<std::int64_t>({1, 2});
  EXPECT_THAT(refused(ones({2, 2}), two, 0.1), throws<InvalidArgument>("weight decay"));
  EXPECT_THAT(refused(ones({3, 2}), two), throws<InvalidArgument>("f32[2, 2]", "f32[3, 2]"));
  EXPECT_THAT(refused(ones({2, 2}), cast(two, DType::i32)), throws<InvalidArgument>("i64"));
  EXPECT_THAT(refused(ones({2, 2}), vec<std::int64_t>({2, 1})),
              throws<InvalidArgument>("ascending", "coalesce"));
  EXPECT_THAT(refused(ones({2, 2}), vec<std::int64_t>({1, 1})), throws<InvalidArgument>("once"));
  EXPECT_THAT(refused(ones({2, 2}), vec<std::int64_t>({1, 4})),
              throws<InvalidArgument>("index 4", "4 rows"));
}

TEST_P(UpdateRules, OfNothingAreFine) {
  State state = update_start(GetParam().rule, zeros({0, 3}));
  apply_update(GetParam().rule, state, zeros({0, 3}), update_step(0.1, 1));
  EXPECT_EQ(state[0].shape(), (Shape{0, 3}));
}

// With momenta of zero the first step of Adam is the learning rate in the gradient's direction.
TEST(Adam, FirstStepIsTheLearningRate) {
  State state{vec<float>({1, 1}), zeros({2}), zeros({2})};
  apply_update(AdamRule{}, state, vec<float>({100, -0.01f}), update_step(0.25, 1));
  EXPECT_NEAR(state[0].data<float>()[0], 0.75, 1e-5);
  EXPECT_NEAR(state[0].data<float>()[1], 1.25, 1e-4);
}

// Every functor of the list is some rule's, and is compared with a formula.
TEST(Update, EveryRuleIsTested) {
  std::vector<int> tested(kUpdateKinds);
  for (const UpdateRow& row : update_rows())
    visit_update_rule(row.rule, [&]<class Rule>(Rule, const auto&) {
      ++tested[static_cast<std::size_t>(kUpdateKind<Rule>)];
    });
  EXPECT_THAT(tested, ::testing::Each(1));
}

// Where a norm is 0 the ratio of norms is 1.
TEST(Update, StepsFromZeroDespiteNorms) {
  State state{zeros({2}), zeros({2}), zeros({2})};
  apply_update(LambRule{}, state, vec({2, -3}), update_step(0.25, 1));
  EXPECT_NEAR(state[0].data<float>()[0], -0.25, 1e-6);
  EXPECT_NEAR(state[0].data<float>()[1], 0.25, 1e-6);
  State lars{zeros({2}), zeros({2})};
  apply_update(LarsRule{}, lars, vec({2, -3}), update_step(0.25, 1));
  EXPECT_THAT(lars[0], holds<float>({-0.5f, 0.75f}));
}

TEST(Ftrl, StandsStillAtARateOfZero) {
  for (const double power : {-0.5, -0.3}) {
    const FtrlRule rule{.learning_rate_power = power, .l2_regularization_strength = 0.5};
    State state{vec({2, -3}), vec({0.1f, 0}), vec({0.5f, 0})};
    apply_update(rule, state, vec({4, 0}), update_step(0, 1));
    EXPECT_THAT(state[0], holds<float>({2, -3}));
    EXPECT_THAT(state[1], holds<float>({0.1f, 0}));
    EXPECT_THAT(state[2], holds<float>({0.5f, 0}));
  }
}

// As TensorFlow has it, of which an accumulator that starts near 0 is the limit.
TEST(Ftrl, GivesZeroWhereNoGradientWasSeen) {
  for (const double power : {-0.5, -0.3}) {
    const FtrlRule rule{.learning_rate_power = power, .initial_accumulator_value = 0};
    State state{vec({2, -3}), zeros({2}), zeros({2})};
    apply_update(rule, state, vec({4, 0}), update_step(0.25, 1));
    // z = 4 - 16^p / 0.25 * 2, w = -z / (16^p / 0.25)
    const double slope = std::pow(16, -power) / 0.25;
    EXPECT_NEAR(state[0].data<float>()[0], 2 - 4 / slope, 1e-6);
    EXPECT_EQ(state[0].data<float>()[1], 0);
    EXPECT_THAT(state[1], holds<float>({16, 0}));
  }
}

TEST(Update, KeepsTheValueThatSomebodyHolds) {
  Tensor weights = full({3}, 3);
  const Tensor held = weights;
  const Tensor view = weights.with_shape({3, 1});
  State state{std::move(weights), zeros({3}), zeros({3})};
  const std::int64_t copies = update_copies();
  apply_update(AdamRule{}, state, ones({3}), update_step(1, 1));
  EXPECT_THAT(held, holds<float>({3, 3, 3}));
  EXPECT_THAT(view, holds<float>({3, 3, 3}));
  EXPECT_NEAR(state[0].data<float>()[0], 2, 1e-5);
  EXPECT_EQ(update_copies(), copies + 1);
  // Slots that are one and the same tensor stay apart.
  const Tensor zero = zeros({1});
  State shared{ones({1}), zero, zero};
  apply_update(AdamRule{}, shared, full({1}, 3), update_step(1, 1));
  EXPECT_FLOAT_EQ(shared[1].item<float>(), 0.3f);
  EXPECT_FLOAT_EQ(shared[2].item<float>(), 0.009f);
  EXPECT_THAT(zero, holds<float>({0}));
}

TEST(Update, RefusesWhatDoesNotFitAndKeepsTheState) {
  State state{ones({2}), zeros({2}), zeros({2})};
  const auto refused = [](const UpdateRule& rule, State state, const Tensor& gradient,
                          const UpdateStep& step) {
    return [=] {
      State changed = state;
      apply_update(rule, changed, gradient, step);
    };
  };
  const Tensor gradient = ones({2}), one(std::int64_t{1}), rate(0.1);
  const UpdateStep step{.learning_rate = rate, .number = one};
  EXPECT_THAT(([&] { apply_update(AdamRule{}, state, ones({3}), step); }),
              throws<InvalidArgument>("[apply_update]", "gradient", "[2]", "[3]"));
  EXPECT_THAT(refused(AdamRule{}, state, ones({2}, DType::f64), step),
              throws<InvalidArgument>("f32", "f64"));
  EXPECT_THAT(refused(AdamRule{}, state, gradient, {.learning_rate = ones({2}), .number = one}),
              throws<InvalidArgument>("learning_rate", "[2]"));
  EXPECT_THAT(refused(AdamRule{}, state, gradient, update_step(0.1, 0)),
              throws<InvalidArgument>("number", "0"));
  EXPECT_THAT(refused(AdamRule{}, state, gradient, {.number = one}),
              throws<InvalidArgument>("learning_rate", "undefined"));
  EXPECT_THAT(state[0], holds<float>({1, 1}));
  EXPECT_THAT(refused(AdamRule{}, {ones({2}), zeros({1}), zeros({2})}, gradient, step),
              throws<InvalidArgument>("slot 'm'", "[1]"));
  EXPECT_THAT(refused(SgdRule{.momentum = 0.5}, {ones({2}), Tensor()}, gradient, step),
              throws<InvalidArgument>("[apply_update]", "slot 'velocity' is undefined"));
  EXPECT_THAT(refused(SgdRule{.momentum = 0.5}, {ones({2})}, gradient, step),
              throws<InvalidArgument>("1 slots", "got 1 tensors"));
  EXPECT_THAT(refused(SgdRule{}, {ones({2}, DType::i32)}, ones({2}, DType::i32), step),
              throws<InvalidArgument>("i32"));
}

TEST(IsFiniteAll, FindsTheOneThatIsNot) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::size_t n : {1u, 7u, 5000u})
      for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")})
        for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          std::vector<double> values(n, 6e4);
          const Shape shape{static_cast<std::int64_t>(n)};
          const Tensor good = cast(Tensor(shape, std::span<const double>(values)), dtype);
          values[at] = bad;
          const Tensor broken = cast(Tensor(shape, std::span<const double>(values)), dtype);
          EXPECT_TRUE(is_finite_all(std::vector{good, good}).item<bool>());
          EXPECT_FALSE(is_finite_all(std::vector{good, broken}).item<bool>())
              << name_of(dtype) << n << " " << at;
        }
  EXPECT_TRUE(is_finite_all({}).item<bool>());
  EXPECT_THAT([] { is_finite_all(std::vector{ones({1}, DType::i32)}); },
              throws<InvalidArgument>("[is_finite_all]", "i32"));
}

TEST(GlobalNorm, IsTheNormOfAllTogether) {
  EXPECT_THAT(global_norm(std::vector{vec<float>({3}), vec<float>({0, 4})}), holds<float>({5}));
  EXPECT_THAT(global_norm({}), holds<float>({0}));
  // Squares that float cannot hold.
  EXPECT_NEAR(global_norm(std::vector{full({4}, 1e30)}).item<double>() / 2e30, 1, 1e-6);
  EXPECT_NEAR(global_norm(std::vector{full({4}, 1e-30)}).item<double>() / 2e-30, 1, 1e-6);
  double squares = 0;
  const Tensor x = Noise(4).tensor<double>({4999});
  for (const double value : doubles_of(x)) squares += value * value;
  for (const auto& [dtype, relative, absolute] : kPrecisions)
    EXPECT_NEAR(global_norm(std::vector{cast(x, dtype)}).item<double>(), std::sqrt(squares),
                std::sqrt(squares) * relative + 2e-6)
        << name_of(dtype);
  EXPECT_TRUE(std::isnan(global_norm(std::vector{vec<float>({NAN})}).item<float>()));
}

TEST(GlobalNorm, BitsAreTheSameOnEveryIsa) {
  const IsaGuard guard;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = cast(Noise(3).tensor<double>({1517}), dtype);
    std::vector<float> results;
    for (const Isa isa : runnable_isas()) {
      set_isa(isa);
      results.push_back(global_norm(std::vector{x, x}).item<float>());
    }
    for (const float result : results) EXPECT_EQ(result, results[0]) << name_of(dtype);
  }
}

}  // namespace
}  // namespace lockstep
