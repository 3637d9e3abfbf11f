// SPDX-License-Identifier: Apache-2.0
// Poolings of one and three axes, and over all of them.
#include <lockstep/ops/pool.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "ops/every_isa.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using testing::expect_gradients;
using testing::expect_second_gradients;
using testing::Noise;
using testing::throws;
using testing::under_each_isa;
using Tensors = std::vector<Tensor>;

// Extents and padding were worked out by hand from TensorFlow's rules.
struct Case {
  const char* name;
  Shape x;
  Size3d window, strides;
  Padding padding = Padding::valid;
  Size3d in = 1, out = 1, before = 0;

  int axes() const { return x.rank() - 2; }
  Pool1dOptions options1() const { return {window.width, strides.width, padding}; }
  Pool3dOptions options3() const { return {window, strides, padding}; }
};

const Case kCases[] = {
    {"1: one element", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"1: one left over", {2, 7, 35}, {1, 1, 2}, {1, 1, 2}, Padding::valid, {1, 1, 7}, {1, 1, 3}},
    {"1: same", {2, 5, 3}, {1, 1, 3}, {1, 1, 2}, Padding::same, {1, 1, 5}, {1, 1, 3}, {0, 0, 1}},
    {"1: given", {1, 6, 17}, {1, 1, 4}, {1, 1, 1}, {3, 1}, {1, 1, 6}, {1, 1, 7}, {0, 0, 3}},
    {"3: one element", {1, 1, 1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"3: halves", {2, 4, 5, 6, 3}, {2, 2, 2}, {2, 2, 2}, Padding::valid, {4, 5, 6}, {2, 2, 3}},
    {"3: same",
     {1, 3, 4, 5, 17},
     {2, 3, 2},
     {1, 2, 2},
     Padding::same,
     {3, 4, 5},
     {3, 2, 3},
     {0, 0, 0}},
    {"3: given",
     {2, 4, 3, 3, 2},
     {3, 2, 3},
     {2, 1, 1},
     {1, 2, 0, 1, 2, 1},
     {4, 3, 3},
     {3, 3, 4},
     {1, 0, 2}},
    {"3: depth alone", {1, 5, 2, 2, 3}, {3, 1, 1}, {2, 1, 1}, Padding::valid, {5, 2, 2}, {2, 2, 2}},
};

// The pixels of x in the window of each element of y, in row-major order.
std::vector<std::vector<std::size_t>> windows(const Case& c) {
  std::vector<std::vector<std::size_t>> all;
  const std::int64_t channels = c.x.dim(-1);
  for (std::int64_t n = 0; n < c.x[0]; ++n)
    for (std::int64_t q = 0; q < c.out.depth; ++q)
      for (std::int64_t r = 0; r < c.out.height; ++r)
        for (std::int64_t s = 0; s < c.out.width; ++s)
          for (std::int64_t k = 0; k < channels; ++k) {
            all.emplace_back();
            for (std::int64_t h = 0; h < c.window.depth; ++h)
              for (std::int64_t i = 0; i < c.window.height; ++i)
                for (std::int64_t j = 0; j < c.window.width; ++j) {
                  const std::int64_t depth = q * c.strides.depth + h - c.before.depth,
                                     row = r * c.strides.height + i - c.before.height,
                                     col = s * c.strides.width + j - c.before.width;
                  if (depth < 0 || depth >= c.in.depth || row < 0 || row >= c.in.height ||
                      col < 0 || col >= c.in.width)
                    continue;
                  all.back().push_back(static_cast<std::size_t>(
                      (((n * c.in.depth + depth) * c.in.height + row) * c.in.width + col) *
                          channels +
                      k));
                }
          }
  return all;
}

Tensor run(bool max, const Case& c, const Tensor& x) {
  if (c.axes() == 1) return max ? max_pool1d(x, c.options1()) : avg_pool1d(x, c.options1());
  return max ? max_pool3d(x, c.options3()) : avg_pool3d(x, c.options3());
}

// Small integers, of which many are equal: ties are part of the definition.
Tensor with_ties(const Shape& shape) { return lockstep::round(Noise(1).tensor<double>(shape, 3)); }
// Values of which no two are near, in an order that looks random.
Tensor distinct(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * 7919 % values.size()) / 64 - 1;
  return Tensor(shape, std::span<const double>(values));
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

// Values and gradients; those of a maximum go to the first of equal pixels.
void expect_definition(const Case& c, DType dtype, double tolerance) {
  SCOPED_TRACE(std::string(c.name) + ", " + std::string(name_of(dtype)));
  const Tensor x = with_ties(c.x);
  const auto all = windows(c);
  const Shape shape = c.axes() == 1
                          ? Shape{c.x[0], c.out.width, c.x.dim(-1)}
                          : Shape{c.x[0], c.out.depth, c.out.height, c.out.width, c.x.dim(-1)};
  const Tensor dy = cast(cast(Noise(2).tensor<double>(shape), dtype), DType::f64);
  std::vector<double> values[2], gradients[2];
  for (auto& gradient : gradients) gradient.resize(static_cast<std::size_t>(c.x.num_elements()));
  for (std::size_t o = 0; o < all.size(); ++o) {
    std::size_t best = all[o][0];
    double sum = 0;
    for (const std::size_t i : all[o]) {
      if (x.data<double>()[i] > x.data<double>()[best]) best = i;
      sum += x.data<double>()[i];
      gradients[0][i] += dy.data<double>()[o] / static_cast<double>(all[o].size());
    }
    gradients[1][best] += dy.data<double>()[o];
    values[0].push_back(sum / static_cast<double>(all[o].size()));
    values[1].push_back(x.data<double>()[best]);
  }
  for (const bool max : {false, true}) {
    GradientTape tape;
    const Tensor in = cast(x, dtype);
    tape.watch(in);
    const Tensor y = run(max, c, in);
    ASSERT_EQ(y.shape(), shape);
    ASSERT_EQ(y.dtype(), dtype);
    expect_near(y, values[max], max ? 0 : tolerance);
    expect_near(tape.gradient(y, {in}, {.target_gradient = cast(dy, dtype)})[0], gradients[max],
                4 * tolerance);
  }
}

TEST(PoolAxes, EqualTheDefinition) {
  under_each_isa([] {
    for (const Case& c : kCases) {
      expect_definition(c, DType::f64, 1e-14);
      expect_definition(c, DType::f32, 1e-6);
      expect_definition(c, DType::bf16, 0.008);
      expect_definition(c, DType::f16, 0.001);
    }
  });
}

TEST(PoolAxes, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    if (c.x.num_elements() > 150) continue;
    SCOPED_TRACE(c.name);
    for (const bool max : {false, true}) {
      expect_gradients([&](const Tensors& t) { return run(max, c, t[0]); }, {distinct(c.x)});
      expect_second_gradients([&](const Tensors& t) { return square(run(max, c, t[0])); },
                              {distinct(c.x)});
    }
  }
}

TEST(PoolAxes, NaNIsLargerThanAll) {
  std::vector<float> values(16, 5.0F);
  values[9] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x(Shape{1, 2, 2, 4, 1}, std::span<const float>(values));
  const std::vector<float> y = max_pool3d(x).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 5);
}

TEST(PoolAxes, TakeNoImages) {
  const Tensor x1 = zeros({0, 4, 2}), x3 = zeros({0, 4, 4, 4, 2});
  for (const auto pool : {max_pool1d, avg_pool1d})
    EXPECT_EQ(pool(x1, {}, {}).shape(), (Shape{0, 2, 2}));
  for (const auto pool : {max_pool3d, avg_pool3d})
    EXPECT_EQ(pool(x3, {}, {}).shape(), (Shape{0, 2, 2, 2, 2}));
}

TEST(PoolAxes, NameWhatDoesNotFit) {
  EXPECT_THAT([] { max_pool1d(zeros({4, 2})); }, throws<InvalidArgument>("[max_pool1d]", "[4, 2]"));
  EXPECT_THAT(
      [] {
        avg_pool1d(zeros({1, 4, 2}, DType::i32));
      },
      throws<InvalidArgument>("[avg_pool1d]", "i32[1, 4, 2]"));
  EXPECT_THAT(
      [] {
        max_pool1d(zeros({1, 1, 2}));
      },
      throws<InvalidArgument>("[max_pool1d]", "covers 2", "[1, 1, 2]", "fit"));
  EXPECT_THAT(
      [] {
        max_pool1d(zeros({1, 4, 2}), {.padding = {2, 0}});
      },
      throws<InvalidArgument>("[max_pool1d]", "padding", "{2, 0}", "[1, 4, 2]"));
  EXPECT_THAT(
      [] {
        max_pool3d(zeros({1, 4, 4, 2}));
      },
      throws<InvalidArgument>("[max_pool3d]", "[1, 4, 4, 2]"));
  EXPECT_THAT(
      [] {
        avg_pool3d(zeros({1, 4, 4, 4, 2}), {.window = 0});
      },
      throws<InvalidArgument>("[avg_pool3d]", "0x0x0"));
  EXPECT_THAT(
      [] {
        avg_pool3d(zeros({1, 4, 4, 4, 2}), {.padding = {0, 0, 0, 3, 0, 0}});
      },
      throws<InvalidArgument>("[avg_pool3d]", "{0, 0, 0, 3, 0, 0}"));
  EXPECT_THAT(
      [] {
        max_pool3d(zeros({1, 4, 4, 4, 2}), {.padding = {1, 1}});
      },
      throws<InvalidArgument>("[max_pool3d]", "3 axes", "{1, 1}"));
}

// ---- over all axes

TEST(GlobalPool, ReducesAllPixels) {
  for (const Shape& shape : {Shape{2, 5, 3}, Shape{2, 4, 3, 5}, Shape{3, 2, 3, 2, 4}}) {
    SCOPED_TRACE(shape.to_string());
    const Tensor x = Noise(1).tensor<double>(shape);
    const std::int64_t channels = shape.dim(-1), pixels = x.num_elements() / shape[0] / channels;
    std::vector<double> largest, mean;
    for (std::int64_t n = 0; n < shape[0]; ++n)
      for (std::int64_t k = 0; k < channels; ++k) {
        double most = -2, sum = 0;
        for (std::int64_t p = 0; p < pixels; ++p) {
          const double value =
              x.data<double>()[static_cast<std::size_t>((n * pixels + p) * channels + k)];
          most = std::max(most, value);
          sum += value;
        }
        largest.push_back(most);
        mean.push_back(sum / static_cast<double>(pixels));
      }
    EXPECT_EQ(global_max_pool(x).shape(), (Shape{shape[0], channels}));
    expect_near(global_max_pool(x), largest, 0);
    expect_near(global_avg_pool(x), mean, 1e-14);
    expect_near(global_avg_pool(cast(x, DType::f32)), mean, 1e-6);
    Shape kept = shape;
    for (int axis = 1; axis + 1 < shape.rank(); ++axis) kept = kept.with_dim(axis, 1);
    EXPECT_EQ(global_max_pool(x, {.keep_dims = true}).shape(), kept);
    EXPECT_EQ(global_avg_pool(x, {.keep_dims = true}).shape(), kept);
    for (const auto pool : {global_max_pool, global_avg_pool})
      expect_gradients([=](const Tensors& t) { return square(pool(t[0], {}, {})); }, {x});
  }
}

TEST(GlobalPool, TakesNoImagesAndNamesWhatDoesNotFit) {
  EXPECT_EQ(global_max_pool(zeros({0, 4, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(global_avg_pool(zeros({0, 4, 2})).shape(), (Shape{0, 2}));
  EXPECT_THAT(
      [] {
        global_max_pool(zeros({4, 2}));
      },
      throws<InvalidArgument>("[global_max_pool]", "[4, 2]"));
  EXPECT_THAT(
      [] {
        global_avg_pool(zeros({4, 0, 2}));
      },
      throws<InvalidArgument>("[global_avg_pool]", "[4, 0, 2]"));
  EXPECT_THAT(
      [] {
        global_avg_pool(zeros({4, 1, 2}, DType::i64));
      },
      throws<InvalidArgument>("[global_avg_pool]", "i64[4, 1, 2]"));
}

}  // namespace
}  // namespace lockstep
