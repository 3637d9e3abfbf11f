// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/custom_gradient.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::expect_gradients;
using lockstep::testing::expect_second_gradients;
using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;

// The gradient of f(x) for x.
template <class F>
Tensor gradient_of(F&& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), {x})[0];
}

// The gradient of that.
template <class F>
Tensor second_gradient_of(F&& f, const Tensor& x) {
  return gradient_of([&](const Tensor& at) { return gradient_of(f, at); }, x);
}

const auto cube = custom_gradient([](const Tensor& x) {
  return std::pair(x * x * x, [x](const Tensor& dy) { return dy * 3 * square(x); });
});

TEST(CustomGradient, IsTheOneThatIsStated) {
  const auto odd = custom_gradient([](const Tensor& x) {
    return std::pair(square(x), [](const Tensor& dy) { return dy * 7; });
  });
  const Tensor x = vec({1, 2});
  EXPECT_THAT(odd(x), holds({1, 4}));
  EXPECT_THAT(gradient_of(odd, x), holds({7, 7}));
}

TEST(CustomGradient, StaysFiniteWhereThatOfTheOpsDoesNot) {
  const auto log1pexp = custom_gradient([](const Tensor& x) {
    return std::pair(log(1 + exp(x)), [x](const Tensor& dy) { return dy * sigmoid(x); });
  });
  const Tensor x = vec<double>({-3, 0, 800});
  const auto gradient = gradient_of(log1pexp, x).to_vector<double>();
  EXPECT_NEAR(gradient[0], 1 / (1 + std::exp(3.0)), 1e-15);
  EXPECT_NEAR(gradient[1], 0.5, 1e-15);
  EXPECT_NEAR(gradient[2], 1, 1e-15);
  EXPECT_TRUE(std::isnan(
      gradient_of([](const Tensor& t) { return log(1 + exp(t)); }, x).to_vector<double>()[2]));
}

TEST(CustomGradient, KeepsWhatTheGradientFunctionHoldsAndNoMore) {
  constexpr std::int64_t kElements = 1 << 18, kBytes = kElements * 4;
  const auto in_use_after = [](const auto& f) {
    const Tensor x = zeros({kElements});
    GradientTape tape;
    tape.watch(x);
    const std::int64_t before = memory_stats({}).in_use;
    const Tensor y = f(x);
    return memory_stats({}).in_use - before;
  };
  const auto ops = [](const Tensor& x) { return tanh(tanh(tanh(x))); };
  const auto own = custom_gradient(
      [&](const Tensor& x) { return std::pair(ops(x), [x](const Tensor& dy) { return dy * x; }); });
  EXPECT_GE(in_use_after(ops), 3 * kBytes);
  EXPECT_LT(in_use_after(own), 2 * kBytes) << "the result, and x which is there anyway";
}

TEST(CustomGradient, IsNoOpWhereNobodyFollowsTheArguments) {
  const Tensor x(2.0f), y(3.0f);
  GradientTape tape;
  tape.watch(y);
  EXPECT_FALSE(recording({&x}));
  const Tensor z = cube(x);
  EXPECT_FALSE(recording({&z}));
  EXPECT_EQ(z.item<float>(), 8);
}

TEST(CustomGradient, AddsToOtherUsesOfTheArgument) {
  const Tensor x(2.0f);
  EXPECT_EQ(gradient_of([](const Tensor& t) { return cube(t) + 5 * t; }, x).item<float>(), 17);
}

TEST(CustomGradient, OfAFunctionThatReturnsItsArgument) {
  const auto doubled = custom_gradient(
      [](const Tensor& x) { return std::pair(x, [](const Tensor& dy) { return dy * 2; }); });
  const Tensor x(3.0f);
  EXPECT_EQ(gradient_of([&](const Tensor& t) { return doubled(t) + t; }, x).item<float>(), 3);
}

TEST(CustomGradient, TakesAndReturnsSeveralTensors) {
  using Two = std::tuple<Tensor, Tensor>;
  const auto sum_and_product = custom_gradient([](const Tensor& a, const Tensor& b) {
    return std::pair(Two(a + b, a * b), [a, b](const Two& dy) {
      const auto& [ds, dp] = dy;
      return Two(ds + dp * b, ds + dp * a);
    });
  });
  const testing::Differentiable both = [&](const std::vector<Tensor>& xs) {
    const auto [s, p] = sum_and_product(xs[0], xs[1]);
    return square(s) * p;
  };
  const testing::Differentiable product = [&](const std::vector<Tensor>& xs) {
    return std::get<1>(sum_and_product(xs[0], xs[1]));  // no gradient comes for the sum: zeros
  };
  const std::vector points{vec<double>({1, -2}), vec<double>({0.5, 3})};
  expect_gradients(both, points);
  expect_gradients(product, points);
  expect_second_gradients(both, points);
}

TEST(CustomGradient, TakesListsAndAnArgumentTwice) {
  const auto weighted = custom_gradient([](const std::vector<Tensor>& xs, const Tensor& factor) {
    Tensor total = xs[0];
    for (std::size_t i = 1; i < xs.size(); ++i) total = total + xs[i];
    return std::pair(total * factor, [n = xs.size(), total, factor](const Tensor& dy) {
      std::vector<Tensor> gradients(n, dy * factor);
      gradients.push_back(dy * stop_gradient(total));
      return gradients;
    });
  });
  const Tensor a(2.0f), b(3.0f);
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const auto gradients = tape.gradient(weighted(std::vector{a, a, b}, b), {a, b});
  EXPECT_EQ(gradients[0].item<float>(), 6);      // 2 b
  EXPECT_EQ(gradients[1].item<float>(), 7 + 3);  // (2 a + b) + b
}

TEST(CustomGradient, AnUndefinedOneMeansNone) {
  const auto chosen = custom_gradient([](const Tensor& x, const Tensor& labels) {
    return std::pair(gather(x, labels), [x, labels](const Tensor& dy) {
      return std::pair(scatter_add(labels, dy, x.dim(0)), Tensor());
    });
  });
  const Tensor labels = vec<std::int64_t>({2, 0, 2});
  EXPECT_THAT(gradient_of([&](const Tensor& x) { return chosen(x, labels); }, vec({1, 2, 3})),
              holds({1, 0, 2}));
}

TEST(CustomGradient, IsDifferentiatedInTurn) {
  const Tensor x(2.0f);
  EXPECT_EQ(gradient_of(cube, x).item<float>(), 12);
  EXPECT_EQ(second_gradient_of(cube, x).item<float>(), 12);  // 6 x
  const auto third = gradient_of([](const Tensor& t) { return second_gradient_of(cube, t); }, x);
  EXPECT_EQ(third.item<float>(), 6);
}

TEST(CustomGradient, MayUseTheResult) {
  const auto own_exp = custom_gradient([](const Tensor& x) {
    const Tensor y = exp(x);
    return std::pair(y, [y](const Tensor& dy) { return dy * y; });
  });
  expect_second_gradients([&](const auto& xs) { return own_exp(xs[0]); }, {vec<double>({0.3, -1})});
}

// With gradients that go by values computed on the way to the result.
const auto log1pexp_by_e = custom_gradient([](const Tensor& x) {
  const Tensor e = exp(x);
  return std::pair(log(1 + e), [e](const Tensor& dy) { return dy * (1 - 1 / (1 + e)); });
});
const auto square_by_slope = custom_gradient([](const Tensor& x) {
  const Tensor slope = 2 * x;
  return std::pair(square(x), [slope](const Tensor& dy) { return dy * slope; });
});

TEST(CustomGradient, OfTheSecondOrderFollowsIntermediateValues) {
  const std::vector points{vec<double>({0.3, -1})};
  expect_second_gradients([](const auto& xs) { return log1pexp_by_e(xs[0]); }, points);
  expect_second_gradients([](const auto& xs) { return square_by_slope(xs[0]); }, points);
  expect_second_gradients(
      [](const auto& xs) { return log1pexp_by_e(square_by_slope(log1pexp_by_e(xs[0]))); }, points);
  const Tensor x(2.0);
  const Tensor third =
      gradient_of([](const Tensor& t) { return second_gradient_of(log1pexp_by_e, t); }, x);
  const double s = 1 / (1 + std::exp(-2.0));
  EXPECT_NEAR(third.item<double>(), s * (1 - s) * (1 - 2 * s), 1e-12);
}

TEST(CustomGradient, OfFunctionsThatHaveOneThemselves) {
  const auto outer = custom_gradient([](const Tensor& x) {
    const Tensor inner = log1pexp_by_e(x);
    return std::pair(square_by_slope(inner),
                     [x, inner](const Tensor& dy) { return dy * 2 * inner * sigmoid(x); });
  });
  expect_gradients([&](const auto& xs) { return outer(xs[0]); }, {vec<double>({0.3, -1})});
  expect_second_gradients([&](const auto& xs) { return outer(xs[0]) * xs[0]; },
                          {vec<double>({0.3, -1})});
}

TEST(CustomGradient, TakesAnIntermediateValueAsConstantOnRequest) {
  const auto scaled = custom_gradient([](const Tensor& x) {
    const Tensor e = stop_gradient(exp(x));
    return std::pair(e * x, [e](const Tensor& dy) { return dy * e; });
  });
  const Tensor x = vec<double>({0.5});
  // By decree f' is e, a constant: (f^2)' = 2 f e, and (f^2)'' = 2 e e.
  const auto loss = [&](const Tensor& t) { return square(scaled(t)); };
  const double e = std::exp(0.5);
  EXPECT_NEAR(gradient_of(loss, x).item<double>(), 2 * (0.5 * e) * e, 1e-12);
  EXPECT_NEAR(second_gradient_of(loss, x).item<double>(), 2 * e * e, 1e-12);
}

TEST(CustomGradient, RefusesToLoseTheGradientOfAVariable) {
  const Variable w(Tensor(3.0f)), fixed(Tensor(5.0f), {.trainable = false});
  const Tensor x(2.0f);
  const auto hides = custom_gradient(
      [&](const Tensor& t) { return std::pair(t * w, [&](const Tensor& dy) { return dy * w; }); });
  EXPECT_EQ(hides(x).item<float>(), 6) << "without a tape nothing is lost";
  EXPECT_THAT([&] { gradient_of(hides, x); },
              throws<InvalidArgument>("[custom_gradient]", "trainable variable", "f32[]", "'mul'",
                                      "argument", "stop_gradient", "custom_gradient_test"));
  const auto still = custom_gradient([&](const Tensor& t) {
    return std::pair(t * stop_gradient(w) * fixed,
                     [&](const Tensor& dy) { return dy * w * fixed; });
  });
  EXPECT_EQ(gradient_of(still, x).item<float>(), 15);
}

TEST(CustomGradient, RefusesToLoseTheGradientOfAWatchedValue) {
  const Tensor x(2.0f), other(3.0f);
  GradientTape tape;
  tape.watch(x);
  tape.watch(other);
  const auto returns_other = custom_gradient(
      [&](const Tensor&) { return std::pair(other, [](const Tensor& dy) { return dy; }); });
  EXPECT_THAT([&] { returns_other(x); },
              throws<InvalidArgument>("[custom_gradient]", "watched value", "argument"));
}

TEST(CustomGradient, OfVariablesThatAreArguments) {
  const Variable w(Tensor(3.0f)), b(Tensor(1.0f));
  const std::vector variables{w, b};
  const auto line = custom_gradient([&](const Tensor& x, const std::vector<Tensor>& values) {
    return std::pair(
        x * w + b, [x, w = values[0]](const Tensor& dy) { return std::tuple(dy * w, dy * x, dy); });
  });
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  const auto gradients = tape.gradient(square(line(x, variables)), {x, w, b});
  EXPECT_EQ(gradients[0].item<float>(), 42);  // 2 (x w + b) w
  EXPECT_EQ(gradients[1].item<float>(), 28);
  EXPECT_EQ(gradients[2].item<float>(), 14);
}

TEST(CustomGradient, NamesGradientsThatDoNotFit) {
  const auto with = [](auto make_gradients) {
    return custom_gradient([make_gradients](const Tensor& x) {
      return std::pair(square(x), [make_gradients](const Tensor&) { return make_gradients(); });
    });
  };
  const Tensor x = vec({1, 2});
  EXPECT_THAT(
      [&] {
        gradient_of(with([] { return vec({1, 2, 3}); }), x);
      },
      throws<InvalidArgument>("[custom_gradient]", "argument 0", "f32[2]", "f32[3]"));
  EXPECT_THAT(
      [&] {
        gradient_of(with([] { return vec<double>({1, 2}); }), x);
      },
      throws<InvalidArgument>("f32[2]", "f64[2]"));
  EXPECT_THAT([&] { gradient_of(with([] { return std::vector<Tensor>(2); }), x); },
              throws<InvalidArgument>("2 gradients for 1"));
}

TEST(CustomGradient, RefusesAnUndefinedResult) {
  const auto nothing = custom_gradient(
      [](const Tensor&) { return std::pair(Tensor(), [](const Tensor& dy) { return dy; }); });
  const auto refused = throws<InvalidArgument>("[custom_gradient]", "undefined", "result 0");
  EXPECT_THAT([&] { gradient_of(nothing, Tensor(1.0f)); }, refused);
  EXPECT_THAT([&] { nothing(Tensor(1.0f)); }, refused);  // no tape is there
}

}  // namespace
}  // namespace lockstep
