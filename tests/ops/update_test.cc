// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

#include "ops/every_isa.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

// Adam as its documentation has it, in double.
struct AdamReference {
  std::vector<double> weights, first, second;
  void update(const std::vector<double>& gradient, double rate, int step, const AdamOptions& o,
              double scale) {
    const double corrected =
        rate * std::sqrt(1 - std::pow(o.beta2, step)) / (1 - std::pow(o.beta1, step));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g = gradient[i] * scale;
      first[i] = o.beta1 * first[i] + (1 - o.beta1) * g;
      second[i] = o.beta2 * second[i] + (1 - o.beta2) * g * g;
      weights[i] -= rate * o.weight_decay * weights[i];
      weights[i] -= corrected * first[i] / (std::sqrt(second[i]) + o.epsilon);
    }
  }
};

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

constexpr std::pair<DType, double> kFloats[] = {
    {DType::f64, 1e-12}, {DType::f32, 2e-6}, {DType::f16, 0.02}, {DType::bf16, 0.1}};

void expect_near(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const auto values = doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance);
}

TEST(Adam, FollowsTheFormula) {
  for (const auto& [dtype, tolerance] : kFloats)
    for (const std::int64_t n : {1, 13, 1500}) {
      const AdamOptions options{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
      Noise noise(1);
      AdamState state{cast(noise.tensor<double>({n}), dtype), zeros({n}, dtype), zeros({n}, dtype)};
      AdamReference reference{doubles(state.weights), doubles(state.first), doubles(state.second)};
      for (int step = 1; step <= 5; ++step) {
        const Tensor gradient = cast(noise.tensor<double>({n}), dtype);
        const double rate = 0.1 / step;
        state = adam_update(std::move(state), gradient, Tensor(rate), Tensor(std::int64_t{step}),
                            options, Tensor(0.5));
        reference.update(doubles(gradient), rate, step, options, 0.5);
      }
      EXPECT_EQ(state.weights.dtype(), dtype);
      expect_near(state.weights, reference.weights, tolerance);
      expect_near(state.first, reference.first, tolerance);
      expect_near(state.second, reference.second, tolerance);
    }
}

// With momenta of zero the first step of Adam is the learning rate in the gradient's direction.
TEST(Adam, FirstStepIsTheLearningRate) {
  AdamState state{vec<float>({1, 1}), zeros({2}), zeros({2})};
  state = adam_update(std::move(state), vec<float>({100, -0.01f}), Tensor(0.25f),
                      Tensor(std::int64_t{1}));
  EXPECT_NEAR(state.weights.data<float>()[0], 0.75, 1e-5);
  EXPECT_NEAR(state.weights.data<float>()[1], 1.25, 1e-4);
}

TEST(Sgd, FollowsTheFormula) {
  for (const auto& [dtype, tolerance] : kFloats)
    for (const auto& [momentum, nesterov] :
         {std::pair{0.0, false}, std::pair{0.9, false}, std::pair{0.9, true}}) {
      constexpr std::int64_t n = 1100;
      const SgdOptions options{.momentum = momentum, .nesterov = nesterov, .weight_decay = 0.2};
      Noise noise(2);
      SgdState state{cast(noise.tensor<double>({n}), dtype),
                     momentum == 0 ? Tensor() : zeros({n}, dtype)};
      std::vector<double> weights = doubles(state.weights), velocity(n, 0.0);
      for (int step = 1; step <= 4; ++step) {
        const Tensor gradient = cast(noise.tensor<double>({n}), dtype);
        state = sgd_update(std::move(state), gradient, Tensor(0.1), options, Tensor(2.0f));
        const auto g = doubles(gradient);
        for (std::size_t i = 0; i < n; ++i) {
          const double change = 0.1 * 2 * g[i];
          velocity[i] = momentum * velocity[i] - change;
          weights[i] -= 0.1 * 0.2 * weights[i];
          weights[i] += nesterov ? momentum * velocity[i] - change : velocity[i];
        }
      }
      expect_near(state.weights, weights, tolerance);
      EXPECT_EQ(state.velocity.defined(), momentum != 0);
      if (momentum != 0) expect_near(state.velocity, velocity, tolerance);
    }
}

TEST(Update, OverwritesWhatNobodyElseHolds) {
  AdamState state{full({1000}, 3), zeros({1000}), zeros({1000})};
  const void* const places[] = {state.weights.raw_data(), state.first.raw_data(),
                                state.second.raw_data()};
  const std::int64_t copies = update_copies();
  for (int step = 1; step <= 3; ++step)
    state = adam_update(std::move(state), ones({1000}), Tensor(0.1), Tensor(std::int64_t{step}));
  EXPECT_EQ(state.weights.raw_data(), places[0]);
  EXPECT_EQ(state.first.raw_data(), places[1]);
  EXPECT_EQ(state.second.raw_data(), places[2]);
  SgdState sgd{full({1000}, 3), zeros({1000})};
  const void* const weights = sgd.weights.raw_data();
  sgd = sgd_update(std::move(sgd), ones({1000}), Tensor(0.1), {.momentum = 0.9});
  EXPECT_EQ(sgd.weights.raw_data(), weights);
  EXPECT_EQ(update_copies(), copies);
  EXPECT_TRUE(state.weights.unique());
}

TEST(Update, KeepsTheValueThatSomebodyHolds) {
  Tensor weights = full({3}, 3);
  const Tensor held = weights;
  const Tensor view = weights.with_shape({3, 1});
  AdamState state{std::move(weights), zeros({3}), zeros({3})};
  const std::int64_t copies = update_copies();
  state = adam_update(std::move(state), ones({3}), Tensor(1.0), Tensor(std::int64_t{1}));
  EXPECT_THAT(held, holds<float>({3, 3, 3}));
  EXPECT_THAT(view, holds<float>({3, 3, 3}));
  EXPECT_NEAR(state.weights.data<float>()[0], 2, 1e-5);
  EXPECT_EQ(update_copies(), copies + 1);
  // Slots that are one and the same tensor stay apart.
  const Tensor zero = zeros({1});
  AdamState shared{ones({1}), zero, zero};
  shared = adam_update(std::move(shared), full({1}, 3), Tensor(1.0), Tensor(std::int64_t{1}));
  EXPECT_FLOAT_EQ(shared.first.item<float>(), 0.3f);
  EXPECT_FLOAT_EQ(shared.second.item<float>(), 0.009f);
  EXPECT_THAT(zero, holds<float>({0}));
}

TEST(Update, RefusesWhatDoesNotFitAndKeepsTheState) {
  AdamState state{ones({2}), zeros({2}), zeros({2})};
  const Tensor gradient = ones({2}), rate(0.1), step(std::int64_t{1});
  EXPECT_THAT([&] { adam_update(std::move(state), ones({3}), rate, step); },
              throws<InvalidArgument>("[adam_update]", "gradient", "[2]", "[3]"));
  EXPECT_THAT([&] { adam_update(std::move(state), ones({2}, DType::f64), rate, step); },
              throws<InvalidArgument>("f32", "f64"));
  EXPECT_THAT([&] { adam_update(std::move(state), gradient, ones({2}), step); },
              throws<InvalidArgument>("learning_rate", "[2]"));
  EXPECT_THAT([&] { adam_update(std::move(state), gradient, rate, Tensor(std::int64_t{0})); },
              throws<InvalidArgument>("step", "0"));
  EXPECT_THAT([&] { adam_update(std::move(state), gradient, Tensor(), step); },
              throws<InvalidArgument>("learning_rate", "undefined"));
  EXPECT_THAT(state.weights, holds<float>({1, 1}));
  EXPECT_THAT(
      [&] {
        adam_update({ones({2}), zeros({1}), zeros({2})}, gradient, rate, step);
      },
      throws<InvalidArgument>("first moment"));
  EXPECT_THAT(
      [&] {
        sgd_update({ones({2}), Tensor()}, gradient, rate, {.momentum = 0.5});
      },
      throws<InvalidArgument>("[sgd_update]", "velocity"));
  EXPECT_THAT(
      [&] {
        sgd_update({ones({2}, DType::i32), Tensor()}, ones({2}, DType::i32), rate);
      },
      throws<InvalidArgument>("i32"));
}

TEST(Update, OfNothingIsFine) {
  AdamState state = adam_update({zeros({0}), zeros({0}), zeros({0})}, zeros({0}), Tensor(0.1),
                                Tensor(std::int64_t{1}));
  EXPECT_EQ(state.weights.shape(), Shape{0});
}

TEST(Update, BitsAreTheSameOnEveryIsa) {
  const IsaGuard guard;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::vector<double>> results;
    for (const Isa isa : runnable_isas()) {
      set_isa(isa);
      Noise noise(3);
      AdamState adam{cast(noise.tensor<double>({517}), dtype), zeros({517}, dtype),
                     zeros({517}, dtype)};
      SgdState sgd{cast(noise.tensor<double>({517}), dtype), zeros({517}, dtype)};
      for (int step = 1; step <= 3; ++step) {
        const Tensor gradient = cast(noise.tensor<double>({517}), dtype);
        adam = adam_update(std::move(adam), gradient, Tensor(0.01), Tensor(std::int64_t{step}));
        sgd =
            sgd_update(std::move(sgd), gradient, Tensor(0.01), {.momentum = 0.9, .nesterov = true});
      }
      results.push_back(doubles(adam.weights));
      for (const double w : doubles(sgd.weights)) results.back().push_back(w);
      results.back().push_back(global_norm(std::vector{adam.weights, sgd.weights}).item<double>());
    }
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << name_of(dtype);
  }
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
  for (const double value : doubles(x)) squares += value * value;
  for (const auto& [dtype, tolerance] : kFloats)
    EXPECT_NEAR(global_norm(std::vector{cast(x, dtype)}).item<double>(), std::sqrt(squares),
                tolerance + 2e-6)
        << name_of(dtype);
  EXPECT_TRUE(std::isnan(global_norm(std::vector{vec<float>({NAN})}).item<float>()));
}

}  // namespace
}  // namespace lockstep
