// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/ops/random_scope.h>

#include <algorithm>
#include <cmath>

namespace lockstep::nn {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments_of(const Tensor& x) {
  Moments moments;
  for (const float value : x.data<float>()) {
    moments.mean += value;
    moments.deviation += value * value;
    moments.largest = std::max(moments.largest, std::abs(static_cast<double>(value)));
  }
  const auto n = static_cast<double>(x.num_elements());
  moments.mean /= n;
  moments.deviation = std::sqrt(moments.deviation / n);
  return moments;
}

class Initializers : public testing::Test {
 private:
  RandomState state_{.seed = 11};
  RandomScope scope_{state_};
};

TEST_F(Initializers, GlorotUniformFillsItsLimit) {
  const Moments dense = moments_of(glorot_uniform({200, 100}));
  const double limit = std::sqrt(6.0 / 300);
  EXPECT_LE(dense.largest, limit);
  EXPECT_GT(dense.largest, 0.999 * limit);
  EXPECT_NEAR(dense.deviation, limit / std::sqrt(3), 0.01 * limit);
  EXPECT_NEAR(dense.mean, 0, 0.02 * limit);
  // 3 x 3 taps: fans of 9 * 16 and 9 * 32.
  const double conv_limit = std::sqrt(6.0 / (9 * 48));
  const Moments conv = moments_of(glorot_uniform({3, 3, 16, 32}));
  EXPECT_LE(conv.largest, conv_limit);
  EXPECT_GT(conv.largest, 0.99 * conv_limit);
}

TEST_F(Initializers, HeNormalHasItsDeviationAfterTruncation) {
  const double deviation = std::sqrt(2.0 / 200);
  const Moments dense = moments_of(he_normal({200, 500}));
  EXPECT_NEAR(dense.deviation, deviation, 0.01 * deviation);
  EXPECT_NEAR(dense.mean, 0, 0.02 * deviation);
  EXPECT_LE(dense.largest, 2 * deviation / 0.87962566 * (1 + 1e-6));
  EXPECT_NEAR(moments_of(he_normal({3, 3, 32, 64})).deviation, std::sqrt(2.0 / 288),
              0.02 * std::sqrt(2.0 / 288));
}

TEST_F(Initializers, DrawAnewEachTime) {
  EXPECT_NE(glorot_uniform({4, 4}).to_vector<float>(), glorot_uniform({4, 4}).to_vector<float>());
}

TEST_F(Initializers, ConstantsAreOfShapeAndDType) {
  EXPECT_EQ(constant(0.5)({2}, DType::f64).to_vector<double>(), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(zeros({2}).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(ones({1}, DType::i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(glorot_uniform({2, 2}, DType::bf16).dtype(), DType::bf16);
}

TEST_F(Initializers, RefuseShapesWithoutFans) {
  EXPECT_THROW(glorot_uniform({}), InvalidArgument);
  EXPECT_THROW(he_normal({0, 4}), InvalidArgument);
}

TEST_F(Initializers, NormalAndUniformHaveTheirParameters) {
  const Moments normal = moments_of(random_normal({.stddev = 0.2})({300, 300}, DType::f32));
  EXPECT_NEAR(normal.deviation, 0.2, 0.002);
  EXPECT_GT(normal.largest, 0.7);
  const Moments cut = moments_of(truncated_normal({.stddev = 0.2})({300, 300}, DType::f32));
  EXPECT_LE(cut.largest, 0.4f);
  EXPECT_NEAR(cut.deviation, 0.2 * 0.8796, 0.002);
  const Tensor uniform = random_uniform({.minval = 1, .maxval = 3})({300, 300}, DType::f32);
  const auto [least, most] = std::ranges::minmax(uniform.to_vector<float>());
  EXPECT_NEAR(least, 1, 1e-3);
  EXPECT_NEAR(most, 3, 1e-3);
  EXPECT_LE(moments_of(random_uniform()({300, 300}, DType::f32)).largest, 0.05f);
}

// The standard deviation of [200, 800], whose fans are 200, 800 and 500 on average.
TEST_F(Initializers, VarianceScalesWithTheFan) {
  const auto deviation = [](const Initializer& initializer) {
    return moments_of(initializer({200, 800}, DType::f32)).deviation;
  };
  const auto expect = [&](const Initializer& initializer, double variance) {
    EXPECT_NEAR(deviation(initializer), std::sqrt(variance), 0.01 * std::sqrt(variance));
  };
  expect(glorot_normal, 1.0 / 500);
  expect(glorot_uniform, 1.0 / 500);
  expect(he_normal, 2.0 / 200);
  expect(he_uniform, 2.0 / 200);
  expect(lecun_normal, 1.0 / 200);
  expect(lecun_uniform, 1.0 / 200);
  expect(variance_scaling({.scale = 3, .mode = FanMode::fan_out}), 3.0 / 800);
  const Initializer untruncated =
      variance_scaling({.distribution = ScaledDistribution::untruncated_normal});
  expect(untruncated, 1.0 / 200);
  EXPECT_GT(moments_of(untruncated({200, 800}, DType::f32)).largest, 3.5 * std::sqrt(1.0 / 200));
  EXPECT_THROW(variance_scaling({.scale = 0}), InvalidArgument);
  EXPECT_THROW(he_normal(Shape{}), InvalidArgument);
}

// A kernel [3, 2, 4] as a matrix of 6 rows has orthonormal columns, [2, 5] orthonormal rows.
TEST_F(Initializers, OrthogonalIsOrthogonal) {
  const auto products = [](const Tensor& x, std::int64_t rows, std::int64_t columns) {
    const auto m = x.to_vector<double>();
    const bool tall = rows >= columns;
    const std::int64_t n = tall ? columns : rows, length = tall ? rows : columns;
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double product = 0;
        for (std::int64_t k = 0; k < length; ++k) {
          const auto at = [&](std::int64_t which) {
            return m[static_cast<std::size_t>(tall ? k * columns + which : which * columns + k)];
          };
          product += at(i) * at(j);
        }
        worst = std::max(worst, std::abs(product - (i == j ? 4.0 : 0.0)));
      }
    return worst;
  };
  EXPECT_LT(products(orthogonal(2)({3, 2, 4}, DType::f64), 6, 4), 1e-12);
  EXPECT_LT(products(orthogonal(2)({2, 5}, DType::f64), 2, 5), 1e-12);
  EXPECT_NE(orthogonal()({3, 3}, DType::f64).to_vector<double>(),
            orthogonal()({3, 3}, DType::f64).to_vector<double>());
  EXPECT_EQ(orthogonal()({3, 3}, DType::f32).dtype(), DType::f32);
  EXPECT_THROW(orthogonal()({3}, DType::f32), InvalidArgument);
  // Both signs come up.
  double sum = 0;
  for (int i = 0; i < 64; ++i) sum += orthogonal()({1, 1}, DType::f64).item<double>();
  EXPECT_LT(std::abs(sum), 48);
}

TEST_F(Initializers, IdentityIsOneOnTheDiagonal) {
  EXPECT_EQ(identity(3)({2, 3}, DType::f32).to_vector<float>(),
            (std::vector<float>{3, 0, 0, 0, 3, 0}));
  EXPECT_THROW(identity()({2}, DType::f32), InvalidArgument);
}

TEST_F(Initializers, AreFoundByKerassNames) {
  for (const std::string& name : initializers::names()) {
    SCOPED_TRACE(name);
    const Tensor x = initializers::get(name)({4, 4}, DType::f64);
    EXPECT_EQ(x.shape(), Shape({4, 4}));
    EXPECT_EQ(x.dtype(), DType::f64);
  }
  EXPECT_EQ(initializers::get("Ones")({1}, DType::f32).item<float>(), 1);
  EXPECT_LE(moments_of(initializers::get("HeUniform")({600, 10}, DType::f32)).largest, 0.1f);
  try {
    initializers::get("xavier");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.location().line, __LINE__ - 3);
    EXPECT_THAT(error.message(), ::testing::AllOf(::testing::HasSubstr("[initializers::get]"),
                                                  ::testing::HasSubstr("glorot_uniform"),
                                                  ::testing::HasSubstr("got 'xavier'")));
  }
}

}  // namespace
}  // namespace lockstep::nn
