// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/nn/position_embedding.h>
#include <lockstep/nn/rotary_embedding.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <complex>

#include "nn/central_difference.h"
#include "support/errors.h"
#include "support/gradient_check.h"

namespace lockstep::nn {
namespace {

using ::testing::DoubleNear;
using testing::expect_gradients;
using ::testing::Pointwise;
using testing::throws;

// Pairs as complex numbers, turned by e^(i p base^(-2i / dim)).
std::vector<double> turned(const Tensor& x, std::int64_t first, double base) {
  const std::int64_t dim = x.dim(-1), positions = x.dim(-2);
  const std::vector<double> from = x.to_vector<double>();
  std::vector<double> to;
  for (std::size_t k = 0; k < from.size(); k += 2) {
    const auto row = static_cast<std::int64_t>(k) / dim, i = static_cast<std::int64_t>(k) % dim;
    const double angle = static_cast<double>(first + row % positions) *
                         std::pow(base, -static_cast<double>(i) / static_cast<double>(dim));
    const auto z = std::complex(from[k], from[k + 1]) * std::polar(1.0, angle);
    to.push_back(z.real());
    to.push_back(z.imag());
  }
  return to;
}

TEST(RotaryEmbedding, TurnsPairsByTheirPositions) {
  const Tensor x = scattered({2, 3, 5, 6});
  EXPECT_THAT(RotaryEmbedding()(x).to_vector<double>(),
              Pointwise(DoubleNear(1e-14), turned(x, 0, 10000)));
  EXPECT_THAT(RotaryEmbedding({.base = 100}).from(Tensor(7), x).to_vector<double>(),
              Pointwise(DoubleNear(1e-14), turned(x, 7, 100)));
}

TEST(RotaryEmbedding, MakesProductsDependOnDistances) {
  const RotaryEmbedding rotary;
  const Tensor q = scattered({1, 8}), k = scattered({1, 8}, 1);
  const auto product = [&](int at, int other) {
    return sum(rotary.from(Tensor(at), q) * rotary.from(Tensor(other), k)).item<double>();
  };
  EXPECT_NEAR(product(3, 5), product(40, 42), 1e-12);
  EXPECT_GT(std::abs(product(3, 5) - product(3, 6)), 1e-3);
}

TEST(RotaryEmbedding, HasTheGradientsOfCentralDifferences) {
  expect_gradients([](const std::vector<Tensor>& x) { return RotaryEmbedding()(x[0]); },
                   {scattered({2, 3, 4})});
}

TEST(RotaryEmbedding, KeepsTheAccuracyOfLatePositions) {
  // One rounding to bf16 of what f32 has.
  const Tensor x = scattered({1, 16});
  const Tensor half = cast(x, DType::bf16);
  const Tensor y = RotaryEmbedding().from(Tensor(50001), half);
  ASSERT_EQ(y.dtype(), DType::bf16);
  const auto expected = turned(cast(half, DType::f64), 50001, 10000);
  EXPECT_THAT(cast(y, DType::f64).to_vector<double>(), Pointwise(DoubleNear(0.008), expected));
}

TEST(RotaryEmbedding, SaysWhatDoesNotFit) {
  EXPECT_THAT([] { RotaryEmbedding({.base = -1}); },
              throws<InvalidArgument>("positive base", "-1"));
  const RotaryEmbedding rotary({.name = "turn"});
  EXPECT_THAT(
      [&] {
        rotary(ones({3, 5}));
      },
      throws<InvalidArgument>("[turn]", "pairs", "f32[3, 5]"));
  EXPECT_THAT([&] { rotary(ones({4})); }, throws<InvalidArgument>("[turn]", "f32[4]"));
  EXPECT_THAT([&] { rotary(lockstep::ones({2, 4}, DType::i32)); }, throws<InvalidArgument>("i32"));
  EXPECT_THAT(
      [&] {
        rotary.from(Tensor(0.5f), ones({2, 4}));
      },
      throws<InvalidArgument>("[turn]", "integer scalar"));
}

TEST(PositionEmbedding, AddsTheVectorOfEachPosition) {
  const PositionEmbedding layer(4, 3);
  ASSERT_EQ(layer.variables().size(), 1u);
  EXPECT_EQ(layer.variables()[0].name(), "position_embedding/embeddings");
  const std::vector<float> table = layer.embeddings().read().to_vector<float>();
  const auto x = full({2, 2, 3}, 10);
  const auto expect_rows = [&](const Tensor& y, std::size_t first) {
    ASSERT_EQ(y.shape(), x.shape());
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(y.data<float>()[i], 10 + table[first * 3 + i % 6]) << i;
  };
  expect_rows(layer(x), 0);
  expect_rows(layer.from(Tensor(2), x), 2);
}

TEST(PositionEmbedding, HasTheGradientsOfCentralDifferences) {
  const PositionEmbedding layer(
      4, 3,
      {.initializer = [](const Shape& shape, DType) { return scattered(shape); },
       .dtype = DType::f64});
  Variable x(scattered({2, 3, 3}, 1), {.name = "x"});
  expect_central_differences({layer.embeddings(), x}, [&] { return sum(square(layer(x))); });
  expect_central_differences({layer.embeddings(), x},
                             [&] { return sum(square(layer.from(Tensor(1), x))); });
}

TEST(PositionEmbedding, SaysWhatDoesNotFit) {
  EXPECT_THAT([] { PositionEmbedding(0, 3); }, throws<InvalidArgument>("[PositionEmbedding]", "0"));
  const PositionEmbedding layer(4, 3, {.name = "places"});
  EXPECT_THAT(
      [&] {
        layer(ones({1, 5, 3}));
      },
      throws<InvalidArgument>("[places]", "at most 4", "5"));
  EXPECT_THAT([&] { layer(ones({1, 4, 2})); }, throws<InvalidArgument>("[places]", "f32[1, 4, 2]"));
  EXPECT_THAT([&] { layer.from(Tensor(3), ones({1, 2, 3})); }, throws<InvalidArgument>("4"));
}

}  // namespace
}  // namespace lockstep::nn
