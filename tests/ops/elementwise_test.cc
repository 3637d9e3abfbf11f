// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "support/elementwise_rows.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAreArray;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Unary : public ::testing::TestWithParam<UnaryRow> {
 protected:
  Tensor run(const Tensor& x) const { return GetParam().op(x, SourceLocation::current()); }

  template <class T>
  Tensor points(std::int64_t n) const {
    const auto& [name, op, reference, low, high, ulps, smooth] = GetParam();
    Noise noise(5);
    std::vector<T> values;
    for (std::int64_t i = 0; i < n; ++i)
      values.push_back(static_cast<T>(low + (high - low) * (0.5 + 0.5 * noise.next())));
    return Tensor(Shape{n}, std::span<const T>(values));
  }
};

TEST_P(Unary, FloatAgreesWithTheReference) {
  for (const std::int64_t n : {0, 1, 7, 64, 1001}) {
    const Tensor x = points<float>(n), y = run(x);
    ASSERT_EQ(y.shape(), x.shape());
    ASSERT_EQ(y.dtype(), DType::f32);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double expected = GetParam().reference(static_cast<double>(x.data<float>()[i]));
      EXPECT_LE(ulps_off(y.data<float>()[i], expected), GetParam().ulps)
          << GetParam().name << "(" << x.data<float>()[i] << ")";
    }
  }
}

TEST_P(Unary, DoubleAgreesWithTheReference) {
  const Tensor x = points<double>(101), y = run(x);
  for (std::size_t i = 0; i < 101; ++i) {
    const double expected = GetParam().reference(x.data<double>()[i]);
    EXPECT_NEAR(y.data<double>()[i], expected, 1e-14 * (1 + std::abs(expected)));
  }
}

// Computed in float and rounded once.
TEST_P(Unary, HalvesAreFloatRounded) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::int64_t n : {0, 1, 3, 2500}) {
      const Tensor x = cast(points<float>(n), dtype);
      const Tensor expected = cast(run(cast(x, DType::f32)), dtype);
      EXPECT_THAT(cast(run(x), DType::f32).to_vector<float>(),
                  ElementsAreArray(cast(expected, DType::f32).to_vector<float>()));
    }
}

TEST_P(Unary, SpecialValuesAreThoseOfTheReference) {
  for (const double special :
       {0.0, -0.0, kInf, -kInf, kNan, -1.0, 1e-40, -1e-40, 3e38, -3e38, 1e7}) {
    if (std::string_view(GetParam().name) == "gelu" && special == -kInf) continue;  // inf * 0
    const auto x = static_cast<float>(special);
    const auto expected = static_cast<float>(GetParam().reference(static_cast<double>(x)));
    const float y = run(Tensor(x)).item<float>();
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(y)) << special;
    } else if (std::isinf(expected)) {
      EXPECT_EQ(y, expected) << special;
    } else {
      EXPECT_NEAR(y, expected, 3e-7 * std::abs(expected) + 2e-45) << special;
    }
  }
}

TEST_P(Unary, GradientsAreCentralDifferences) {
  const Tensor x = points<double>(9);
  const Differentiable f = [&](const std::vector<Tensor>& xs) { return run(xs[0]); };
  if (GetParam().smooth == Smooth::no) {
    GradientTape tape;
    tape.watch(x);
    EXPECT_FALSE(tape.gradient(run(x), {x})[0].defined());
    return;
  }
  // Of exp over its whole range differences say nothing.
  const Tensor near = minimum(maximum(x, -4), 4);
  expect_gradients(f, {near});
}

TEST_P(Unary, GradientsOfGradientsAreCentralDifferences) {
  if (GetParam().smooth != Smooth::twice) return;
  const Tensor x = minimum(maximum(points<double>(7), -2), 4);
  expect_second_gradients([&](const std::vector<Tensor>& xs) { return run(xs[0]); }, {x});
}

// The fused kernels of float and the halves say what the tape says in f64.
TEST_P(Unary, GradientsOfOtherFloatsAgreeWithDouble) {
  if (GetParam().smooth == Smooth::no) return;
  const Tensor x = minimum(maximum(points<double>(33), -3), 4);
  const auto gradient = [&](DType dtype) {
    const Tensor point = cast(x, dtype);
    GradientTape tape;
    tape.watch(point);
    return cast(tape.gradient(run(point), {point})[0], DType::f64).to_vector<double>();
  };
  const std::vector<double> expected = gradient(DType::f64);
  const std::pair<DType, double> dtypes[] = {
      {DType::f32, 1e-5}, {DType::f16, 0.02}, {DType::bf16, 0.15}};
  for (const auto& [dtype, tolerance] : dtypes) {
    const std::vector<double> actual = gradient(dtype);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i])))
          << name_of(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Elementwise, Unary, ::testing::ValuesIn(kUnaryRows),
                         [](const auto& row) { return row.param.name; });

TEST(Elementwise, IntegersWrapAround) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  EXPECT_THAT(neg(vec<std::int32_t>({3, kMin})), holds<std::int32_t>({-3, kMin}));
  EXPECT_THAT(lockstep::abs(vec<std::int64_t>({-3, 4})), holds<std::int64_t>({3, 4}));
  EXPECT_THAT(sign(vec<std::int32_t>({-3, 0, 4})), holds<std::int32_t>({-1, 0, 1}));
  EXPECT_THAT(relu(vec<std::int32_t>({-3, 0, 4})), holds<std::int32_t>({0, 0, 4}));
  EXPECT_THAT(square(vec<std::uint8_t>({3, 16})), holds<std::uint8_t>({9, 0}));
  EXPECT_THAT(vec<std::uint8_t>({250}) + 10, holds<std::uint8_t>({4}));
  EXPECT_THAT(vec<std::int32_t>({kMin}) - 1,
              holds<std::int32_t>({std::numeric_limits<std::int32_t>::max()}));
  EXPECT_THAT(vec<std::int64_t>({std::int64_t{1} << 62}) * 4, holds<std::int64_t>({0}));
  EXPECT_THAT(maximum(vec<std::int64_t>({-5, 7}), 2), holds<std::int64_t>({2, 7}));
}

TEST(Elementwise, NoGradientFlowsThroughIntegers) {
  const Tensor x = vec<std::int32_t>({1, 2});
  for (const auto& op : std::vector<std::function<Tensor()>>{
           [&] { return neg(x); }, [&] { return square(x); }, [&] { return x * x; }}) {
    GradientTape tape;
    tape.watch(x);
    EXPECT_FALSE(tape.gradient(op(), {x})[0].defined());
  }
}

TEST(Elementwise, ReluHasGradientZeroAtZero) {
  const Tensor x = vec<float>({-1, 0, 2});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(relu(x), {x})[0], holds<float>({0, 0, 1}));
}

// To what the rounding of x^2 / 2 makes of exp(-x^2 / 2), down to subnormal results.
TEST(Elementwise, GeluKeepsItsTail) {
  for (float x = -14.5f; x < 0; x += 0.0137f) {
    const double wide = static_cast<double>(x);
    EXPECT_LE(ulps_off(gelu(Tensor(x)).item<float>(), wide * 0.5 * std::erfc(-wide / std::sqrt(2))),
              7 + wide * wide / 2)
        << x;
  }
}

TEST(Elementwise, SineOfLargeArgumentsIsReducedExactly) {
  for (const float x : {2e6f, 1e10f, -3e30f}) {
    EXPECT_LE(ulps_off(lockstep::tan(Tensor(x)).item<float>(), std::tan(static_cast<double>(x))),
              1);
    EXPECT_LE(ulps_off(lockstep::sin(Tensor(x)).item<float>(), std::sin(static_cast<double>(x))),
              1);
    EXPECT_LE(ulps_off(lockstep::cos(Tensor(x)).item<float>(), std::cos(static_cast<double>(x))),
              1);
  }
}

// ---- binary -----------------------------------------------------------------------------------

struct Shapes {
  Shape a, b, y;
};
const Shapes kShapes[] = {
    {{}, {}, {}},
    {{5}, {5}, {5}},
    {{3, 70}, {3, 70}, {3, 70}},
    {{3, 70}, {}, {3, 70}},
    {{}, {4, 3}, {4, 3}},
    {{5, 13}, {13}, {5, 13}},  // a bias
    {{13}, {5, 13}, {5, 13}},
    {{5, 13}, {5, 1}, {5, 13}},  // a column
    {{5, 1}, {1, 13}, {5, 13}},  // an outer product
    {{2, 3, 4}, {3, 1}, {2, 3, 4}},
    {{2, 1, 4, 1}, {3, 1, 5}, {2, 3, 4, 5}},
    {{2, 3, 1, 2, 1}, {1, 3, 4, 1, 2}, {2, 3, 4, 2, 2}},
    {{0, 3}, {3}, {0, 3}},
    {{1, 3}, {0, 1}, {0, 3}},
    {{1}, {1, 1}, {1, 1}},
};

// The element of `x` that stands at `index` of a result of shape `y`.
double broadcast_element(const Tensor& x, const Shape& y, std::int64_t index) {
  std::int64_t offset = 0, stride = 1;
  for (int back = 1; back <= y.rank(); ++back) {
    const std::int64_t extent = y[y.rank() - back];
    if (back <= x.rank()) {
      const std::int64_t own = x.shape()[x.rank() - back];
      if (own != 1) offset += index % extent * stride;
      stride *= own;
    }
    index /= extent;
  }
  return x.data<double>()[static_cast<std::size_t>(offset)];
}

Tensor positive(const Shape& shape, std::uint64_t seed) {
  return lockstep::abs(Noise(seed).tensor<double>(shape, 2)) + 0.3;
}

class Binary : public ::testing::TestWithParam<BinaryRow> {
 protected:
  Tensor run(const Operand& a, const Operand& b) const { return GetParam().op(a, b); }
};

TEST_P(Binary, BroadcastsAsNumPyDoes) {
  for (const Shapes& shapes : kShapes) {
    const Tensor a = positive(shapes.a, 1), b = positive(shapes.b, 2), y = run(a, b);
    ASSERT_EQ(y.shape(), shapes.y);
    for (std::int64_t i = 0; i < y.num_elements(); ++i) {
      const double expected = GetParam().reference(broadcast_element(a, y.shape(), i),
                                                   broadcast_element(b, y.shape(), i));
      ASSERT_DOUBLE_EQ(y.data<double>()[static_cast<std::size_t>(i)], expected);
    }
    // In float and the halves the same of rounded operands, rounded.
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::f32, 1e-6}, std::pair{DType::f16, 4e-3}, std::pair{DType::bf16, 3e-2}}) {
      const Tensor small_a = cast(a, dtype), small_b = cast(b, dtype);
      const Tensor small = cast(run(small_a, small_b), DType::f64);
      const Tensor exact = run(cast(small_a, DType::f64), cast(small_b, DType::f64));
      ASSERT_EQ(small.shape(), shapes.y);
      for (std::size_t i = 0; i < static_cast<std::size_t>(y.num_elements()); ++i)
        ASSERT_NEAR(small.data<double>()[i], exact.data<double>()[i],
                    tolerance * (1 + std::abs(exact.data<double>()[i])));
    }
  }
}

TEST_P(Binary, FloatAgreesWithTheReference) {
  for (const double size : {1.0, 20.0}) {
    const Tensor a = Noise(11).tensor<float>({1001}, size), b = Noise(12).tensor<float>({1001}, 3);
    const Tensor y = run(a, b);
    for (std::size_t i = 0; i < 1001; ++i) {
      const float left = a.data<float>()[i], right = b.data<float>()[i];
      const double expected =
          GetParam().reference(static_cast<double>(left), static_cast<double>(right));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(y.data<float>()[i])) << left << ", " << right;
      else
        EXPECT_LE(ulps_off(y.data<float>()[i], expected), GetParam().ulps)
            << left << ", " << right << " gives " << y.data<float>()[i];
    }
  }
}

TEST_P(Binary, SpecialValuesAreThoseOfTheReference) {
  const double values[] = {0.0, -0.0, 1,     -1,   0.5,   -0.5, 2,     -2,  3,
                           -3,  kInf, -kInf, kNan, 1e-40, 3e38, -3e38, 2e7, 16777217};
  for (const double left : values)
    for (const double right : values) {
      const auto a = static_cast<float>(left), b = static_cast<float>(right);
      const auto expected =
          static_cast<float>(GetParam().reference(static_cast<double>(a), static_cast<double>(b)));
      const float y = run(vec({a}), vec({b})).item<float>();
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y)) << a << ", " << b << " gives " << y;
      } else {
        EXPECT_FLOAT_EQ(y, expected) << a << ", " << b;
        EXPECT_FLOAT_EQ(run(Tensor(a), b).item<float>(), y);
      }
    }
}

TEST_P(Binary, TakesIntegersWhereOffered) {
  for (const DType dtype : {DType::i32, DType::i64, DType::u8}) {
    const Tensor a = cast(vec<double>({7, 100, 3, 1}), dtype);
    const Tensor b = cast(vec<double>({3, 100, 8, 5}), dtype);
    if (!GetParam().integers) {
      EXPECT_THAT([&] { run(a, b); }, throws<InvalidArgument>(GetParam().name, name_of(dtype)));
      continue;
    }
    std::vector<double> expected;
    for (std::size_t i = 0; i < 4; ++i)
      expected.push_back(GetParam().reference(cast(a, DType::f64).data<double>()[i],
                                              cast(b, DType::f64).data<double>()[i]));
    const Tensor wanted =
        cast(cast(Tensor(Shape{4}, std::span<const double>(expected)), DType::i64),
             dtype);  // wraps around
    EXPECT_THAT(cast(run(a, b), DType::f64),
                holds<double>(cast(wanted, DType::f64).to_vector<double>()));
  }
}

TEST_P(Binary, GradientsAreSummedBackToTheOperands) {
  for (const Shapes& shapes : kShapes) {
    if (shapes.y.num_elements() > 100) continue;
    expect_gradients([&](const std::vector<Tensor>& xs) { return run(xs[0], xs[1]); },
                     {positive(shapes.a, 3), positive(shapes.b, 4)});
  }
}

TEST_P(Binary, GradientsOfGradientsAreCentralDifferences) {
  expect_second_gradients([&](const std::vector<Tensor>& xs) { return square(run(xs[0], xs[1])); },
                          {positive({2, 3}, 5), positive({3}, 6)});
}

TEST_P(Binary, NumbersTakeTheDtypeOfTheTensor) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = cast(vec<double>({0.5, 2}), dtype);
    EXPECT_EQ(run(x, 2).dtype(), dtype);
    EXPECT_EQ(run(1.5, x).dtype(), dtype);
    const std::vector<double> y = cast(run(1.5, x), DType::f64).to_vector<double>();
    EXPECT_NEAR(y[1], GetParam().reference(1.5, 2), 0.02);
  }
  expect_gradients([&](const std::vector<Tensor>& xs) { return run(xs[0], 1.5); },
                   {positive({3}, 7)});
  expect_gradients([&](const std::vector<Tensor>& xs) { return run(1.5, xs[0]); },
                   {positive({3}, 8)});
}

TEST_P(Binary, MixedDtypesAreRefusedByName) {
  EXPECT_THAT([&] { run(vec<float>({1}), vec<double>({1})); },
              throws<InvalidArgument>("f32", "f64", GetParam().name, "cast"));
  EXPECT_THAT([&] { run(vec<bool>({true}), vec<bool>({true})); }, throws<InvalidArgument>("bool"));
  EXPECT_THAT([&] { run(Tensor(), vec<float>({1})); },
              throws<InvalidArgument>("first operand is undefined"));
  EXPECT_THAT([&] { run(vec<float>({1}), Tensor()); }, throws<InvalidArgument>("second operand"));
}

TEST_P(Binary, ShapesThatDoNotBroadcastAreRefused) {
  const auto error = caught<InvalidArgument>([&] {
    run(Noise(1).tensor<float>({2, 3}), vec<float>({1, 2}));
  });
  EXPECT_THAT(error->what(), ::testing::HasSubstr("[2, 3] and [2]"));
  EXPECT_THAT(error->location().file, ::testing::HasSubstr("elementwise_test.cc"));
}

INSTANTIATE_TEST_SUITE_P(Elementwise, Binary, ::testing::ValuesIn(kBinaryRows),
                         [](const auto& row) { return row.param.name; });

TEST(Elementwise, OperatorsAreTheOps) {
  const Tensor x = vec<float>({4}), y = vec<float>({2});
  EXPECT_THAT(x + y, holds<float>({6}));
  EXPECT_THAT(x - 1, holds<float>({3}));
  EXPECT_THAT(10 * y, holds<float>({20}));
  EXPECT_THAT(1.0 / x, holds<float>({0.25f}));
  EXPECT_THAT(-x, holds<float>({-4}));
}

TEST(Elementwise, ErrorsCarryTheCallersLine) {
  const Tensor x = vec<float>({1}), y = vec<std::int32_t>({1});
  const int line = __LINE__ + 1;
  const auto error = caught<InvalidArgument>([&] { return x * y; });
  EXPECT_EQ(error->location().line, line);
  const auto unary = caught<InvalidArgument>([&] { return lockstep::exp(y); });
  EXPECT_THAT(unary->what(), ::testing::HasSubstr("[exp] expected a tensor of a floating dtype"));
  EXPECT_EQ(unary->location().line, line + 2);
}

TEST(Elementwise, NumbersThatAnIntegerDtypeCannotHoldAreRefused) {
  const Tensor x = vec<std::int32_t>({7}), bytes = vec<std::uint8_t>({7});
  EXPECT_THAT(x * 2.0, holds<std::int32_t>({14}));
  EXPECT_THAT([&] { x * 2.5; }, throws<InvalidArgument>("2.5", "i32"));
  EXPECT_THAT([&] { x + 3e9; }, throws<InvalidArgument>("i32"));
  EXPECT_THAT([&] { bytes + -1; }, throws<InvalidArgument>("u8"));
  EXPECT_THAT([&] { vec<std::int64_t>({1}) + 9.3e18; }, throws<InvalidArgument>("i64"));
  EXPECT_THAT([&] { add(1, 2); }, throws<InvalidArgument>("two numbers"));
  EXPECT_THAT([&] { x / x; }, throws<InvalidArgument>("[div]", "i32"));
}

TEST(Elementwise, MaximumGivesTiesToTheFirst) {
  const Tensor a = vec<float>({1, 2, 3}), b = vec<float>({3, 2, 1});
  GradientTape tape({.persistent = true});
  tape.watch(a);
  tape.watch(b);
  const Tensor high = maximum(a, b), low = minimum(a, b);
  EXPECT_THAT(tape.gradient(high, {a})[0], holds<float>({0, 1, 1}));
  EXPECT_THAT(tape.gradient(high, {b})[0], holds<float>({1, 0, 0}));
  EXPECT_THAT(tape.gradient(low, {a})[0], holds<float>({1, 1, 0}));
  EXPECT_THAT(tape.gradient(low, {b})[0], holds<float>({0, 0, 1}));
}

TEST(Elementwise, MaximumAndMinimumLetNaNThrough) {
  const float nan = NAN;
  for (const auto op : {maximum, minimum}) {
    EXPECT_TRUE(std::isnan(op(vec<float>({nan}), vec<float>({1})).item<float>()));
    EXPECT_TRUE(std::isnan(op(vec<float>({1}), vec<float>({nan})).item<float>()));
  }
}

TEST(Elementwise, PowerAtTheEdges) {
  EXPECT_THAT(lockstep::pow(vec<float>({-2, 0, 2, -2}), vec<float>({3, 0, -1, 2})),
              holds<float>({-8, 1, 0.5f, 4}));
  const Tensor a = vec<double>({0, -2, 2}), b = vec<double>({2, 2, 2});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const auto gradients = tape.gradient(lockstep::pow(a, b), {a, b});
  EXPECT_THAT(gradients[0], holds<double>({0, -4, 4}));
  EXPECT_THAT(gradients[1], holds<double>({0, 0, 4 * std::log(2.0)}));
}

TEST(Elementwise, ModHasTheSignOfTheDivisor) {
  EXPECT_THAT(mod(vec<float>({7, -7, 7, -7, 5.5f}), vec<float>({3, 3, -3, -3, 2})),
              holds<float>({1, 2, -2, -1, 1.5f}));
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  EXPECT_THAT(
      mod(vec<std::int32_t>({7, -7, 7, -7, 5, kMin}), vec<std::int32_t>({3, 3, -3, -3, 0, -1})),
      holds<std::int32_t>({1, 2, -2, -1, 0, 0}));
  EXPECT_THAT(mod(vec<std::int64_t>({-1, 6}), 4), holds<std::int64_t>({3, 2}));
  const Tensor a = vec<double>({7, -7}), b = vec<double>({3, 3});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const auto gradients = tape.gradient(mod(a, b), {a, b});
  EXPECT_THAT(gradients[0], holds<double>({1, 1}));
  EXPECT_THAT(gradients[1], holds<double>({-2, 3}));  // minus the floored quotient
}

// Quotients just below a whole number, which 16 bits have not.
TEST(Elementwise, ModsGradientOfTheDivisorIsTheWholeQuotient) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<double> dividends, divisors;
    for (int n = 2; n < 60; ++n)
      for (int k = 0; k < 40; ++k) {
        divisors.push_back(1 + k * (dtype == DType::f16 ? 0x25p-10 : 0x5p-7) / 2);
        dividends.push_back((k % 2 ? n : -n) * divisors.back() * (1 - 0x1p-10));
      }
    const Shape shape{static_cast<std::int64_t>(dividends.size())};
    const Tensor a = cast(Tensor(shape, std::span<const double>(dividends)), dtype);
    const Tensor b = cast(Tensor(shape, std::span<const double>(divisors)), dtype);
    GradientTape tape;
    tape.watch(b);
    const Tensor gradient = cast(tape.gradient(mod(a, b), {b})[0], DType::f64);
    const auto as = cast(a, DType::f64).to_vector<double>();
    const auto bs = cast(b, DType::f64).to_vector<double>();
    for (std::size_t i = 0; i < as.size(); ++i)
      ASSERT_EQ(gradient.data<double>()[i], -std::floor(as[i] / bs[i]))
          << name_of(dtype) << ": " << as[i] << " and " << bs[i];
  }
}

// Quotients of all sizes, whole ones, and some just beside whole ones: fmod in double is exact.
TEST(Elementwise, ModOfFloatsIsExact) {
  std::vector<float> a, b;
  Noise noise(4);
  for (int i = 0; i < 3000; ++i) {
    const auto divisor = static_cast<float>(noise.next() * std::exp2(noise.next() * 30));
    const auto quotient = static_cast<float>(std::round(std::exp2(15 + noise.next() * 25)));
    for (const float whole : {divisor * quotient, divisor * (quotient + 0.5f)})
      for (const float value :
           {whole, std::nextafter(whole, 0.0f), std::nextafter(whole, INFINITY)}) {
        a.push_back(value);
        b.push_back(divisor);
      }
  }
  const Shape shape{static_cast<std::int64_t>(a.size())};
  const Tensor y =
      mod(Tensor(shape, std::span<const float>(a)), Tensor(shape, std::span<const float>(b)));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto expected =
        static_cast<float>(mod_of(static_cast<double>(a[i]), static_cast<double>(b[i])));
    EXPECT_EQ(y.data<float>()[i], expected) << a[i] << ", " << b[i];
  }
}

// Without a tape that records it, a gradient is one kernel's, of the same text.
TEST(Elementwise, GradientsInOnePassAreThoseOfOps) {
  const std::vector<float> values{-INFINITY, -2.5f, -1, -0.0f, 0, 0.75f, 1, 3, INFINITY, NAN};
  std::vector<float> as, bs;
  for (const float a : values)
    for (const float b : values) {
      as.push_back(a);
      bs.push_back(b);
    }
  const auto gradients_of = [](const BinaryRow& row, const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    return tape.gradient(row.op(a, b), {a, b});
  };
  const auto expect_equal = [&](const BinaryRow& row, const Tensor& a, const Tensor& b) {
    const auto fused = gradients_of(row, a, b);
    GradientTape recorder;
    recorder.watch(a);
    recorder.watch(b);
    const auto composed = gradients_of(row, a, b);
    for (std::size_t of = 0; of < 2; ++of)
      for (std::int64_t i = 0; i < fused[of].num_elements(); ++i) {
        const float one = fused[of].data<float>()[i], many = composed[of].data<float>()[i];
        EXPECT_TRUE(one == many || (std::isnan(one) && std::isnan(many)))
            << row.name << ", gradient " << of << " at " << i << ": " << one << ", not " << many;
      }
  };
  const Shape shape{static_cast<std::int64_t>(as.size())};
  const Tensor a(shape, std::span<const float>(as)), b(shape, std::span<const float>(bs));
  for (const BinaryRow& row : kBinaryRows) {
    expect_equal(row, a, b);
    expect_equal(row, a, Tensor(0.25f));
    expect_equal(row, Tensor(0.25f), b);
  }
}

TEST(Elementwise, LeakyReluTakesANumberOrSlopes) {
  const Tensor x = vec<double>({-2, 0, 3});
  EXPECT_THAT(leaky_relu(x), holds<double>({-0.4, 0, 3}));
  const Tensor slopes = vec<double>({0.5, 0.25, 0.125});
  GradientTape tape;
  tape.watch(x);
  tape.watch(slopes);
  const auto gradients = tape.gradient(leaky_relu(x, slopes), {x, slopes});
  EXPECT_THAT(gradients[0], holds<double>({0.5, 0.25, 1}));
  EXPECT_THAT(gradients[1], holds<double>({-2, 0, 0}));
  expect_second_gradients(
      [](const std::vector<Tensor>& xs) { return square(leaky_relu(xs[0], xs[1])); },
      {Noise(2).tensor<double>({3, 4}, 2), Noise(3).tensor<double>({4})});
}

TEST(Elementwise, GradientsFlowThroughTheSameTensorTwice) {
  const Tensor x = vec<double>({3});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(x * x + x, {x})[0], holds<double>({7}));
}

}  // namespace
}  // namespace lockstep
