// SPDX-License-Identifier: Apache-2.0
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

}  // namespace
}  // namespace lockstep::nn
