// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/cumsum.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

const CumsumOptions kWays[] = {
    {}, {.exclusive = true}, {.reverse = true}, {.exclusive = true, .reverse = true}};

CumsumOptions along(int axis, CumsumOptions way) {
  way.axis = axis;
  return way;
}

// By the definition, each element's sum from nothing.
std::vector<double> by_definition(const Tensor& x, const CumsumOptions& options) {
  const int axis = options.axis < 0 ? options.axis + x.rank() : options.axis;
  std::int64_t inner = 1;
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  const std::int64_t n = x.dim(axis);
  const double* const from = x.data<double>().data();
  std::vector<double> y(static_cast<std::size_t>(x.num_elements()), 0.0);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const std::int64_t place = i / inner % n;
    for (std::int64_t k = 0; k < n; ++k) {
      const bool before = options.reverse ? k > place : k < place;
      if (before || (k == place && !options.exclusive))
        y[static_cast<std::size_t>(i)] += from[i + (k - place) * inner];
    }
  }
  return y;
}

TEST(Cumsum, AddsUpAlongAnyAxis) {
  const std::pair<Shape, int> cases[] = {
      {{1}, 0},      {{7}, 0},       {{3, 5}, 0}, {{3, 5}, -1}, {{2, 3, 4}, 1},
      {{3, 700}, 0}, {{2, 1000}, 1}, {{0, 3}, 0}, {{3, 0}, 0},  {{4, 2, 1}, -1}};
  for (const auto& [shape, axis] : cases)
    for (const CumsumOptions& way : kWays) {
      const CumsumOptions options = along(axis, way);
      const Tensor x = Noise(1).tensor<double>(shape);
      const std::vector<double> expected = by_definition(x, options);
      for (const auto& [dtype, tolerance] :
           {std::pair{DType::f64, 1e-12}, std::pair{DType::f32, 1e-6}, std::pair{DType::f16, 0.02},
            std::pair{DType::bf16, 0.1}}) {
        const Tensor y = cumsum(cast(x, dtype), options);
        ASSERT_EQ(y.shape(), shape);
        ASSERT_EQ(y.dtype(), dtype);
        const std::vector<double> values = cast(y, DType::f64).to_vector<double>();
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i])))
              << name_of(dtype) << shape.to_string();
      }
    }
}

TEST(Cumsum, TakesIntegersWhichWrapAround) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(cumsum(vec<std::int32_t>({kMax, 1, 5})),
              holds<std::int32_t>({kMax, -kMax - 1, -kMax + 4}));
  EXPECT_THAT(cumsum(vec<std::int64_t>({1, 2, 3}), {.exclusive = true}),
              holds<std::int64_t>({0, 1, 3}));
  EXPECT_THAT(cumsum(vec<std::int64_t>({1, 2, 3}), {.reverse = true}),
              holds<std::int64_t>({6, 5, 3}));
}

// A float's running sum of so many thousandths would be off by thousands of its last places.
TEST(Cumsum, FloatsAreAddedUpAccurately) {
  const std::vector<float> y = cumsum(full({1000000}, 0.001)).to_vector<float>();
  EXPECT_FLOAT_EQ(y.back(), static_cast<float>(1e6 * static_cast<double>(0.001f)));
}

TEST(Cumsum, GradientsEqualDifferences) {
  for (const CumsumOptions& way : kWays) {
    const auto f = [&](const std::vector<Tensor>& xs) { return cumsum(xs[0], along(1, way)); };
    expect_gradients(f, {Noise(2).tensor<double>({2, 4, 3})});
    expect_second_gradients([&](const std::vector<Tensor>& xs) { return square(f(xs)); },
                            {Noise(3).tensor<double>({2, 3})});
  }
}

TEST(Cumsum, NamesWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        cumsum(zeros({2, 3}), {.axis = 2});
      },
      throws<InvalidArgument>("[cumsum]", "axis 2", "[2, 3]"));
  EXPECT_THAT([] { cumsum(zeros({})); }, throws<InvalidArgument>("[cumsum]", "scalar"));
  EXPECT_THAT([] { cumsum(vec<bool>({true})); }, throws<InvalidArgument>("[cumsum]", "bool"));
  EXPECT_THAT([] { cumsum(Tensor()); }, throws<InvalidArgument>("[cumsum]", "undefined"));
}

}  // namespace
}  // namespace lockstep
