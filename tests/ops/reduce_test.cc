// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

// What a reduction over `axes` (none: all) of an f64 tensor gives, one element at a time.
std::vector<double> reduced_by_hand(const Tensor& x, const std::vector<int>& axes, double start,
                                    double (*combine)(double, double)) {
  const Shape& shape = x.shape();
  std::vector<bool> gone(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (const int axis : axes)
    gone[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  std::int64_t results = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!gone[static_cast<std::size_t>(axis)]) results *= shape[axis];
  std::vector<double> y(static_cast<std::size_t>(results), start);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (!gone[static_cast<std::size_t>(axis)]) {
        place += rest % shape[axis] * stride;
        stride *= shape[axis];
      }
      rest /= shape[axis];
    }
    double& result = y[static_cast<std::size_t>(place)];
    result = combine(result, x.data<double>()[static_cast<std::size_t>(i)]);
  }
  return y;
}

struct ReduceCase {
  Shape shape;
  std::vector<int> axes;
  Shape result, kept;
};
const ReduceCase kCases[] = {
    {{}, {}, {}, {}},
    {{1}, {}, {}, {1}},
    {{7}, {0}, {}, {1}},
    {{200}, {}, {}, {1}},
    {{3, 5}, {}, {}, {1, 1}},
    {{3, 5}, {0}, {5}, {1, 5}},
    {{3, 5}, {1}, {3}, {3, 1}},
    {{3, 5}, {-1}, {3}, {3, 1}},
    {{70, 3}, {0}, {3}, {1, 3}},
    {{70, 64}, {0}, {64}, {1, 64}},
    {{2, 70, 150}, {1}, {2, 150}, {2, 1, 150}},
    {{5, 600}, {0}, {600}, {1, 600}},
    {{5, 600}, {1}, {5}, {5, 1}},
    {{2, 3, 4}, {1}, {2, 4}, {2, 1, 4}},
    {{2, 3, 4}, {0, 2}, {3}, {1, 3, 1}},
    {{2, 3, 4}, {2, 0}, {3}, {1, 3, 1}},
    {{2, 3, 4, 5}, {0, 1, 2}, {5}, {1, 1, 1, 5}},
    {{2, 3, 4, 5}, {1, 3}, {2, 4}, {2, 1, 4, 1}},
    {{2, 1, 4}, {1}, {2, 4}, {2, 1, 4}},
    {{4, 0}, {1}, {4}, {4, 1}},
    {{0, 4}, {1}, {0}, {0, 1}},
};

TEST(Reduce, SumAddsOverTheAxes) {
  for (const ReduceCase& row : kCases) {
    const Tensor x = Noise(3).tensor<double>(row.shape);
    const auto expected = reduced_by_hand(x, row.axes, 0, [](double a, double b) { return a + b; });
    const Tensor y = sum(x, {.axes = row.axes});
    EXPECT_EQ(y.shape(), row.result);
    EXPECT_EQ(sum(x, {.axes = row.axes, .keep_dims = true}).shape(), row.kept);
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::f64, 1e-12}, std::pair{DType::f32, 1e-5}, std::pair{DType::f16, 0.05},
          std::pair{DType::bf16, 0.3}}) {
      const Tensor narrow = cast(sum(cast(x, dtype), {.axes = row.axes}), DType::f64);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(narrow.data<double>()[i], expected[i], tolerance) << name_of(dtype);
    }
  }
}

TEST(Reduce, ProdMultipliesOverTheAxes) {
  for (const ReduceCase& row : kCases) {
    const Tensor x = Noise(3).tensor<double>(row.shape, 0.3) + 1.0;
    const auto expected = reduced_by_hand(x, row.axes, 1, [](double a, double b) { return a * b; });
    const Tensor y = prod(x, {.axes = row.axes});
    EXPECT_EQ(y.shape(), row.result);
    EXPECT_EQ(prod(x, {.axes = row.axes, .keep_dims = true}).shape(), row.kept);
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::f64, 1e-12}, std::pair{DType::f32, 1e-4}}) {
      const Tensor narrow = cast(prod(cast(x, dtype), {.axes = row.axes}), DType::f64);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(narrow.data<double>()[i], expected[i], tolerance * (1 + expected[i]))
            << name_of(dtype) << row.shape.to_string();
    }
  }
  EXPECT_THAT(cast(prod(cast(vec<float>({2, 3, -4}), DType::bf16)), DType::f32),
              holds<float>({-24}));
  EXPECT_THAT(prod(vec<std::int32_t>({65536, 65536, 3})), holds<std::int32_t>({0}));
  EXPECT_THAT(prod(vec<std::int64_t>({-3, 5})), holds<std::int64_t>({-15}));
  EXPECT_THAT([] { prod(vec<bool>({true})); }, throws<InvalidArgument>("[prod]", "bool"));
}

TEST(Reduce, ProdHasTheRightGradientsWhereFactorsAreZero) {
  const Tensor x(Shape{4, 3}, {2.0, 3.0, 4.0, 2.0, 0.0, 4.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(prod(x, {.axes = {1}}), {x})[0],
              holds<double>({12, 8, 6, 0, 8, 0, 0, 0, 0, 0, 0, 0}));
  const auto gradient = [](const Tensor& factors) {
    GradientTape own;
    own.watch(factors);
    return own.gradient(prod(factors, {.axes = {1}}), {factors})[0];
  };
  EXPECT_THAT(gradient(Tensor(Shape{2, 3}, {2.0, 3.0, 4.0, -1.0, 5.0, 2.0})),
              holds<double>({12, 8, 6, 10, -2, -5}));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(gradient(Tensor(Shape{2, 3}, {kNaN, 0.0, 4.0, kNaN, 2.0, 4.0})).to_vector<double>(),
              ::testing::Pointwise(::testing::NanSensitiveDoubleEq(),
                                   std::vector{0.0, kNaN, 0.0, kNaN, kNaN, kNaN}));
  for (const std::vector<int>& axes : {std::vector<int>{1}, {0}, {0, 1}}) {
    const Differentiable f = [&](const std::vector<Tensor>& xs) {
      return prod(xs[0], {.axes = axes});
    };
    expect_gradients(f, {x});
    expect_second_gradients(f, {x});
    expect_second_gradients(f, {Noise(7).tensor<double>({4, 3})});
  }
  const Tensor wide = Noise(8).tensor<double>({2, 3, 2, 2});
  expect_second_gradients(
      [](const std::vector<Tensor>& xs) {
        return square(prod(xs[0], {.axes = {0, 2}}));
      },
      {wide});
}

TEST(Reduce, VarianceIsTheBiasedOne) {
  const Tensor x(Shape{2, 4}, {1.0, 2.0, 3.0, 6.0, 5.0, 5.0, 5.0, 5.0});
  EXPECT_THAT(variance(x, {.axes = {1}}), holds<double>({3.5, 0}));
  EXPECT_THAT(stddev(x, {.axes = {1}, .keep_dims = true}), holds<double>({std::sqrt(3.5), 0}));
  EXPECT_THAT(variance(x), holds<double>({2.75}));
  // Around a mean that is large beside it.
  EXPECT_NEAR(variance(Noise(1).tensor<float>({1000}) + 1000).item<double>(), 1.0 / 3, 0.03);
  // The squares are beyond f16.
  EXPECT_THAT(cast(stddev(cast(vec<float>({-300, 300}), DType::f16)), DType::f32),
              holds<float>({300}));
  EXPECT_TRUE(std::isnan(variance(zeros({0})).item<float>()));
  EXPECT_EQ(variance(zeros({0, 3}), {.axes = {1}}).shape(), (Shape{0}));
  EXPECT_THAT([] { variance(vec<int>({1})); }, throws<InvalidArgument>("[variance]", "i32"));
  EXPECT_THAT([&] { stddev(x, {.axes = {2}}); }, throws<InvalidArgument>("[stddev]", "axis 2"));
}

TEST(Reduce, LogSumExpNeitherOverflowsNorLosesInfinities) {
  const Tensor x(Shape{2, 2}, {1000.0f, 1000.0f, -1000.0f, -1001.0f});
  const std::vector<float> y = logsumexp(x, {.axes = {1}}).to_vector<float>();
  EXPECT_FLOAT_EQ(y[0], 1000.6931472f);
  EXPECT_FLOAT_EQ(y[1], -999.6867383f);
  EXPECT_EQ(logsumexp(x, {.axes = {1}, .keep_dims = true}).shape(), (Shape{2, 1}));
  EXPECT_THAT(logsumexp(vec<float>({-INFINITY, -INFINITY})), holds<float>({-INFINITY}));
  EXPECT_THAT(logsumexp(vec<float>({-INFINITY, 2})), holds<float>({2}));
  EXPECT_THAT(logsumexp(vec<float>({INFINITY, 1})), holds<float>({INFINITY}));
  EXPECT_TRUE(std::isnan(logsumexp(vec<float>({NAN, 1})).item<float>()));
  EXPECT_THAT(logsumexp(zeros({2, 0}), {.axes = {1}}), holds<float>({-INFINITY, -INFINITY}));
  EXPECT_EQ(logsumexp(zeros({0, 2}), {.axes = {1}}).shape(), (Shape{0}));
  EXPECT_THAT([] { logsumexp(vec<int>({1})); }, throws<InvalidArgument>("[logsumexp]", "i32"));
  for (const ReduceCase& row : kCases) {
    const Tensor values = Noise(3).tensor<double>(row.shape, 3);
    auto expected = reduced_by_hand(lockstep::exp(values), row.axes, 0,
                                    [](double a, double b) { return a + b; });
    const Tensor sums = logsumexp(values, {.axes = row.axes});
    EXPECT_EQ(sums.shape(), row.result);
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (expected[i] > 0) {
        EXPECT_NEAR(sums.data<double>()[i], std::log(expected[i]), 1e-12);
      }
  }
}

TEST(Reduce, MeanDividesByTheCount) {
  const Tensor x(Shape{2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 9.0f});
  EXPECT_THAT(mean(x), holds<float>({4}));
  EXPECT_THAT(mean(x, {.axes = {0}}), holds<float>({2.5, 3.5, 6}));
  EXPECT_THAT(mean(x, {.axes = {1}}), holds<float>({2, 6}));
  // The sum, 1.2e6, is beyond f16.
  EXPECT_THAT(cast(mean(full({20000}, 60, DType::f16)), DType::f32), holds<float>({60}));
  EXPECT_THAT([] { mean(vec<int>({1})); }, throws<InvalidArgument>("[mean]", "i32"));
}

TEST(Reduce, OfNothing) {
  EXPECT_THAT(sum(zeros({0})), holds<float>({0}));
  EXPECT_THAT(sum(zeros({2, 0}, DType::i64), {.axes = {1}}), holds<std::int64_t>({0, 0}));
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item<float>()));
  EXPECT_THAT([] { max(zeros({0})); }, throws<InvalidArgument>("[max]", "[0]"));
  EXPECT_THAT(
      [] {
        min(zeros({2, 0}), {.axes = {1}});
      },
      throws<InvalidArgument>("[min]", "[2, 0]"));
  EXPECT_EQ(max(zeros({0, 2}), {.axes = {1}}).shape(), (Shape{0}));
  EXPECT_FALSE(any(zeros({0}, DType::boolean)).item<bool>());
  EXPECT_TRUE(all(zeros({0}, DType::boolean)).item<bool>());
  EXPECT_THAT(all(zeros({2, 0}, DType::boolean), {.axes = {1}}), holds<bool>({true, true}));
}

TEST(Reduce, IntegerSumsAreExact) {
  constexpr std::int64_t kBig = std::int64_t{1} << 53;
  EXPECT_THAT(sum(vec<std::int64_t>({kBig, 1, 1})), holds<std::int64_t>({kBig + 2}));
  EXPECT_THAT(sum(vec<std::int32_t>({2000000000, 2000000000})), holds<std::int32_t>({-294967296}));
  std::vector<std::int32_t> many(5001);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i);
  EXPECT_THAT(sum(Tensor(Shape{5001}, std::span<const std::int32_t>(many))),
              holds<std::int32_t>({12502500}));
  EXPECT_THAT([] { sum(vec<std::uint8_t>({1})); }, throws<InvalidArgument>("[sum]", "u8"));
  EXPECT_THAT([] { sum(vec<bool>({true})); }, throws<InvalidArgument>("[sum]", "bool"));
}

// A running float sum of so many ones with a thousandth each would be off by percents.
TEST(Reduce, FloatSumsAreAccurate) {
  constexpr std::int64_t kRows = 300000;
  const Tensor x = full({kRows, 3}, 1.001);
  const double exact = static_cast<double>(1.001f) * kRows;
  EXPECT_NEAR(sum(x).item<double>() / (3 * exact), 1, 5e-7);
  for (const float column : sum(x, {.axes = {0}}).to_vector<float>())
    EXPECT_NEAR(static_cast<double>(column) / exact, 1, 5e-7);
  Noise noise(8);
  std::vector<float> values(100003);
  double expected = 0, size = 0;
  for (float& value : values) {
    value = static_cast<float>(noise.next());
    expected += static_cast<double>(value);
    size += std::abs(static_cast<double>(value));
  }
  EXPECT_NEAR(sum(Tensor(Shape{100003}, std::span<const float>(values))).item<double>(), expected,
              size * 1e-8);
}

TEST(Reduce, MaxAndMinOfEveryDtype) {
  for (const ReduceCase& row : kCases) {
    if (row.shape.num_elements() == 0) continue;
    const Tensor x = lockstep::round(Noise(4).tensor<double>(row.shape, 30)) + 31;
    const auto high =
        reduced_by_hand(x, row.axes, -1e9, [](double a, double b) { return std::max(a, b); });
    const auto low =
        reduced_by_hand(x, row.axes, 1e9, [](double a, double b) { return std::min(a, b); });
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      EXPECT_THAT(cast(max(cast(x, dtype), {.axes = row.axes}), DType::f64), holds<double>(high))
          << name_of(dtype);
      EXPECT_THAT(cast(min(cast(x, dtype), {.axes = row.axes}), DType::f64), holds<double>(low))
          << name_of(dtype);
    }
  }
}

TEST(Reduce, MaxAndMinLetNaNThroughFromAnywhere) {
  for (const std::size_t n : {std::size_t{3}, std::size_t{64}, std::size_t{131}, std::size_t{5000}})
    for (std::size_t at = 0; at < n; at += n / 3) {
      std::vector<float> values(n, 1.0f);
      values[at] = NAN;
      const Tensor x(Shape{static_cast<std::int64_t>(n)}, std::span<const float>(values));
      EXPECT_TRUE(std::isnan(max(x).item<float>()));
      EXPECT_TRUE(std::isnan(min(x).item<float>()));
      EXPECT_TRUE(
          std::isnan(max(x.with_shape({x.num_elements(), 1}), {.axes = {0}}).item<float>()));
    }
  EXPECT_TRUE(
      std::isnan(max(Tensor(Shape{3, 2}, {1.0f, 1.0f, NAN, 1.0f, 5.0f, 1.0f}), {.axes = {0}})
                     .data<float>()[0]));
}

TEST(Reduce, AnyAndAll) {
  const Tensor x(Shape{2, 2}, {true, false, false, false});
  EXPECT_TRUE(any(x).item<bool>());
  EXPECT_FALSE(all(x).item<bool>());
  EXPECT_THAT(any(x, {.axes = {1}}), holds<bool>({true, false}));
  EXPECT_THAT(all(vec<bool>({true, true})), holds<bool>({true}));
  EXPECT_THAT([] { any(vec<float>({1})); }, throws<InvalidArgument>("[any]", "f32"));
}

TEST(Reduce, ArgmaxIsTheFirstOfTheLargest) {
  const Tensor x(Shape{2, 3}, {1.0f, 5.0f, 5.0f, 7.0f, NAN, 9.0f});
  EXPECT_THAT(argmax(x), holds<std::int64_t>({1, 1}));
  EXPECT_THAT(argmax(x, 0), holds<std::int64_t>({1, 1, 1}));
  EXPECT_THAT(argmax(cast(vec<float>({1, 3, 2}), DType::bf16)), holds<std::int64_t>({1}));
  EXPECT_THAT(argmax(vec<std::uint8_t>({1, 3, 200})), holds<std::int64_t>({2}));
  EXPECT_THAT([&] { argmax(x, 2); }, throws<InvalidArgument>("[argmax]", "axis 2", "[2, 3]"));
  EXPECT_THAT([] { argmax(zeros({2, 0})); }, throws<InvalidArgument>("empty"));
  EXPECT_EQ(argmax(zeros({0, 3})).shape(), (Shape{0}));
}

TEST(Reduce, ArgminIsTheFirstOfTheLeast) {
  const Tensor x(Shape{2, 3}, {5.0f, 1.0f, 1.0f, 7.0f, NAN, -9.0f});
  EXPECT_THAT(argmin(x), holds<std::int64_t>({1, 1}));
  EXPECT_THAT(argmin(x, 0), holds<std::int64_t>({0, 1, 1}));
  EXPECT_THAT(argmin(cast(vec<float>({3, 1, 2}), DType::f16)), holds<std::int64_t>({1}));
  EXPECT_THAT(argmin(vec<std::int32_t>({1, -3, -3})), holds<std::int64_t>({1}));
  EXPECT_THAT(argmin(vec<bool>({true, false, false})), holds<std::int64_t>({1}));
  EXPECT_THAT([&] { argmin(x, -3); }, throws<InvalidArgument>("[argmin]", "axis -3", "[2, 3]"));
  EXPECT_THAT([] { argmin(zeros({2, 0})); }, throws<InvalidArgument>("[argmin]", "empty"));
}

TEST(Reduce, ArgmaxAndArgminFindTheirPlaceInColumnsOfEveryDtype) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    const std::int64_t rows = 300, cols = 600;
    const Tensor x = cast(Noise(3).tensor<float>({rows, cols}, 100) + 100, dtype);
    const std::vector<double> values = cast(x, DType::f64).to_vector<double>();
    std::vector<std::int64_t> most, least;
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto at = [&](std::int64_t r) {
        return values[static_cast<std::size_t>(r * cols + c)];
      };
      std::int64_t high = 0, low = 0;
      for (std::int64_t r = 1; r < rows; ++r) {
        if (at(r) > at(high)) high = r;
        if (at(r) < at(low)) low = r;
      }
      most.push_back(high);
      least.push_back(low);
    }
    EXPECT_THAT(argmax(x, 0), holds<std::int64_t>(most)) << name_of(dtype);
    EXPECT_THAT(argmin(x, 0), holds<std::int64_t>(least)) << name_of(dtype);
  }
  std::vector<float> column(400, 1.0f);
  column[150] = column[350] = NAN;
  const Tensor x(Shape{200, 2}, std::span<const float>(column));
  EXPECT_THAT(argmax(x, 0), holds<std::int64_t>({75, 0}));
  EXPECT_THAT(argmin(x, 0), holds<std::int64_t>({75, 0}));
}

TEST(Reduce, ArgmaxAndArgminFindTheirPlaceInLongRows) {
  for (const std::int64_t n : {2, 63, 64, 65, 1000, 5000})
    for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<float> values = Noise(9).tensor<float>({n}).to_vector<float>();
      values[static_cast<std::size_t>(place)] = 2;
      const Tensor x(Shape{n}, std::span<const float>(values));
      EXPECT_EQ(argmax(x).item<std::int64_t>(), place);
      EXPECT_EQ(argmin(-x).item<std::int64_t>(), place);
      EXPECT_EQ(argmin(x.with_shape({n, 1}) * vec<float>({-1, 1}), 0).data<std::int64_t>()[0],
                place);
    }
}

TEST(Reduce, AxesAreChecked) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT([&] { sum(x, {.axes = {2}}); }, throws<InvalidArgument>("[sum]", "axis 2", "[2, 3]"));
  EXPECT_THAT([&] { sum(x, {.axes = {0, -2}}); }, throws<InvalidArgument>("twice"));
  EXPECT_THAT([&] { sum(Tensor()); }, throws<InvalidArgument>("undefined"));
}

TEST(Reduce, GradientsAreCentralDifferences) {
  for (const ReduceCase& row : kCases) {
    if (row.shape.num_elements() == 0 || row.shape.num_elements() > 100) continue;
    const Tensor x = Noise(5).tensor<double>(row.shape);
    for (const bool keep : {false, true}) {
      const ReduceOptions options{.axes = row.axes, .keep_dims = keep};
      expect_gradients([&](const std::vector<Tensor>& xs) { return sum(xs[0], options); }, {x});
      expect_gradients([&](const std::vector<Tensor>& xs) { return mean(xs[0], options); }, {x});
      expect_gradients([&](const std::vector<Tensor>& xs) { return max(xs[0], options); }, {x});
      expect_gradients([&](const std::vector<Tensor>& xs) { return min(xs[0], options); }, {x});
    }
  }
  const Tensor x = Noise(6).tensor<double>({2, 3});
  for (const auto op : {variance, stddev, logsumexp, prod})
    for (const bool keep : {false, true})
      expect_gradients(
          [&](const std::vector<Tensor>& xs) {
            return op(xs[0], {.axes = {0}, .keep_dims = keep}, SourceLocation{});
          },
          {x});
  for (const auto op : {sum, mean, max, variance, stddev, logsumexp, prod})
    expect_second_gradients(
        [&](const std::vector<Tensor>& xs) {
          return square(op(square(xs[0]), {.axes = {1}}, SourceLocation{}));
        },
        {x});
}

TEST(Reduce, MaxDividesItsGradientAmongTies) {
  const Tensor x(Shape{2, 4}, {3.0f, 1.0f, 3.0f, 2.0f, 5.0f, 5.0f, 5.0f, 5.0f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(max(x, {.axes = {1}}), {x})[0],
              holds<float>({0.5, 0, 0.5, 0, 0.25, 0.25, 0.25, 0.25}));
}

TEST(SumToShape, UndoesBroadcasting) {
  const Tensor x(Shape{2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_THAT(sum_to_shape(x, Shape{3}), holds<float>({5, 7, 9}));
  EXPECT_THAT(sum_to_shape(x, Shape{2, 1}), holds<float>({6, 15}));
  EXPECT_EQ(sum_to_shape(x, Shape{2, 1}).shape(), (Shape{2, 1}));
  EXPECT_THAT(sum_to_shape(x, Shape{}), holds<float>({21}));
  EXPECT_EQ(sum_to_shape(x, x.shape()).key(), x.key());
  EXPECT_EQ(sum_to_shape(zeros({1, 1, 3}), Shape{3}).shape(), (Shape{3}));
  EXPECT_THAT(sum_to_shape(zeros({0, 3}), Shape{1, 3}), holds<float>({0, 0, 0}));
  EXPECT_THAT([&] { sum_to_shape(x, Shape{2}); }, throws<InvalidArgument>("[2]", "[2, 3]"));
  EXPECT_THAT([&] { sum_to_shape(x, Shape{1, 2, 3}); }, throws<InvalidArgument>("[1, 2, 3]"));
}

}  // namespace
}  // namespace lockstep
