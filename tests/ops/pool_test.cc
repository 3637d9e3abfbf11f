// SPDX-License-Identifier: Apache-2.0
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

struct Case {
  const char* name;
  Shape x;
  Pool2dOptions options;
  std::int64_t out_h, out_w, pad_top, pad_left;  // worked out by hand from TensorFlow's rules
};

const Case kCases[] = {
    {"one pixel", {1, 1, 1, 1}, {.window = 1, .strides = 1}, 1, 1, 0, 0},
    {"halves", {2, 4, 6, 3}, {}, 2, 3, 0, 0},
    {"halves, a row and a column left over", {2, 5, 7, 35}, {}, 2, 3, 0, 0},
    {"overlapping", {1, 5, 6, 17}, {.window = 3, .strides = 2}, 2, 2, 0, 0},
    {"same", {2, 5, 4, 2}, {.window = 3, .strides = 1, .padding = Padding::same}, 5, 4, 1, 1},
    {"same, strided",
     {1, 5, 5, 33},
     {.window = 2, .strides = 2, .padding = Padding::same},
     3,
     3,
     0,
     0},
    {"given",
     {1, 4, 4, 5},
     {.window = {2, 3}, .strides = {2, 1}, .padding = {1, 0, 2, 1}},
     2,
     5,
     1,
     2},
    {"pixels between the windows", {1, 7, 7, 4}, {.window = 2, .strides = 3}, 2, 2, 0, 0},
    {"more than 256 taps", {1, 18, 20, 3}, {.window = {17, 18}, .strides = 1}, 2, 3, 0, 0},
};

// The pixels of x in the window of each element of y, in row-major order.
std::vector<std::vector<std::size_t>> windows(const Case& c) {
  std::vector<std::vector<std::size_t>> all;
  const auto [window, strides, padding] = c.options;
  for (std::int64_t n = 0; n < c.x[0]; ++n)
    for (std::int64_t r = 0; r < c.out_h; ++r)
      for (std::int64_t s = 0; s < c.out_w; ++s)
        for (std::int64_t k = 0; k < c.x[3]; ++k) {
          all.emplace_back();
          for (std::int64_t i = 0; i < window.height; ++i)
            for (std::int64_t j = 0; j < window.width; ++j) {
              const std::int64_t row = r * strides.height + i - c.pad_top;
              const std::int64_t col = s * strides.width + j - c.pad_left;
              if (row < 0 || row >= c.x[1] || col < 0 || col >= c.x[2]) continue;
              all.back().push_back(
                  static_cast<std::size_t>(((n * c.x[1] + row) * c.x[2] + col) * c.x[3] + k));
            }
        }
  return all;
}

// Values of which no two are equal or near, in an order that looks random.
Tensor distinct(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * 7919 % values.size()) / 64 - 1;
  return Tensor(shape, std::span<const double>(values));
}

void expect_definition(const Case& c) {
  SCOPED_TRACE(c.name);
  const Tensor x = Noise(1).tensor<double>(c.x);
  const auto values = x.data<double>();
  std::vector<double> largest, mean;
  for (const auto& window : windows(c)) {
    double high = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const std::size_t at : window) {
      high = std::max(high, values[at]);
      sum += values[at];
    }
    largest.push_back(high);
    mean.push_back(sum / static_cast<double>(window.size()));
  }
  ASSERT_EQ(max_pool2d(x, c.options).shape(), (Shape{c.x[0], c.out_h, c.out_w, c.x[3]}));
  EXPECT_EQ(max_pool2d(x, c.options).to_vector<double>(), largest);
  const Tensor narrow_max = max_pool2d(cast(x, DType::f32), c.options);
  for (std::size_t i = 0; i < largest.size(); ++i)
    ASSERT_EQ(narrow_max.data<float>()[i], static_cast<float>(largest[i])) << i;
  for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-14},
                                         {DType::f32, 1e-6},
                                         {DType::bf16, 0.01},
                                         {DType::f16, 0.002}}) {
    const Tensor y = avg_pool2d(cast(x, dtype), c.options);
    ASSERT_EQ(y.dtype(), dtype);
    const std::vector<double> found = cast(y, DType::f64).to_vector<double>();
    ASSERT_EQ(found.size(), mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(found[i], mean[i], tolerance) << i;
  }
}

// Each element of dy reaches the largest pixel of its window, or all in equal parts.
void expect_gradient_by_definition(const Case& c, DType dtype) {
  SCOPED_TRACE(c.name);
  const Tensor x = distinct(c.x);
  const Shape y_shape{c.x[0], c.out_h, c.out_w, c.x[3]};
  const Tensor dy = Noise(2).tensor<double>(y_shape);
  std::vector<double> of_max(static_cast<std::size_t>(x.num_elements()), 0.0), of_mean = of_max;
  const auto all = windows(c);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t best = all[i][0];
    for (const std::size_t at : all[i]) {
      if (x.data<double>()[at] > x.data<double>()[best]) best = at;
      of_mean[at] += dy.data<double>()[i] / static_cast<double>(all[i].size());
    }
    of_max[best] += dy.data<double>()[i];
  }
  const auto gradient = [&](auto pool) {
    GradientTape tape;
    const Tensor input = cast(x, dtype);
    tape.watch(input);
    const Tensor dx = tape.gradient(pool(input, c.options, SourceLocation{}), {input},
                                    {.target_gradient = cast(dy, dtype)})[0];
    return cast(dx, DType::f64).to_vector<double>();
  };
  const double tolerance = dtype == DType::f64 ? 1e-14 : 2e-6;
  const std::vector<double> found_max = gradient(max_pool2d), found_mean = gradient(avg_pool2d);
  for (std::size_t i = 0; i < of_max.size(); ++i) {
    ASSERT_NEAR(found_max[i], of_max[i], tolerance) << i;
    ASSERT_NEAR(found_mean[i], of_mean[i], tolerance) << i;
  }
}

TEST(Pool2d, EqualsTheDefinition) {
  under_each_isa([] {
    for (const Case& c : kCases) expect_definition(c);
  });
}

TEST(Pool2d, GradientsEqualTheDefinition) {
  under_each_isa([] {
    for (const Case& c : kCases) {
      expect_gradient_by_definition(c, DType::f32);
      expect_gradient_by_definition(c, DType::f64);
    }
  });
}

TEST(Pool2d, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    if (c.x.num_elements() > 200) continue;
    SCOPED_TRACE(c.name);
    expect_gradients([&](const auto& x) { return max_pool2d(x[0], c.options); }, {distinct(c.x)});
    expect_gradients([&](const auto& x) { return avg_pool2d(x[0], c.options); }, {distinct(c.x)});
  }
}

TEST(Pool2d, SecondGradientsEqualDifferences) {
  const Pool2dOptions options{.window = 3, .strides = 2, .padding = Padding::same};
  expect_second_gradients([&](const auto& x) { return square(max_pool2d(x[0], options)); },
                          {distinct({1, 4, 5, 2})}, 1e-5);
  expect_second_gradients([&](const auto& x) { return square(avg_pool2d(x[0], options)); },
                          {distinct({1, 4, 5, 2})}, 1e-5);
}

TEST(MaxPool2d, GradientGoesToTheFirstOfEquals) {
  under_each_isa([] {
    for (const std::int64_t channels : {1, 16}) {
      const Tensor x = ones({1, 2, 2, channels});
      GradientTape tape;
      tape.watch(x);
      const Tensor dx = tape.gradient(max_pool2d(x), {x})[0];
      for (std::int64_t i = 0; i < 4 * channels; ++i)
        EXPECT_EQ(dx.data<float>()[static_cast<std::size_t>(i)], i < channels ? 1 : 0);
    }
  });
}

TEST(MaxPool2d, NaNIsLargerThanAll) {
  under_each_isa([] {
    for (const std::int64_t channels : {1, 16})
      for (std::int64_t tap = 0; tap < 4; ++tap) {
        std::vector<float> values(static_cast<std::size_t>(4 * channels), 5.0F);
        values[static_cast<std::size_t>(tap * channels)] = std::numeric_limits<float>::quiet_NaN();
        const Tensor x(Shape{1, 2, 2, channels}, std::span<const float>(values));
        const Tensor y = max_pool2d(x);
        EXPECT_TRUE(std::isnan(y.data<float>()[0])) << tap;
        if (channels > 1) {
          EXPECT_EQ(y.data<float>()[1], 5) << tap;
        }
      }
  });
}

TEST(MaxPool2d, FindsTheLargestOfNegatives) {
  const Tensor x(Shape{1, 1, 1, 2}, {-3.0F, -std::numeric_limits<float>::infinity()});
  const Tensor y = max_pool2d(x, {.window = 3, .strides = 1, .padding = Padding::same});
  EXPECT_THAT(y, testing::holds({-3.0F, -std::numeric_limits<float>::infinity()}));
}

TEST(Pool2d, TakesNoImages) {
  const Tensor x = zeros({0, 4, 4, 2});
  for (const auto pool : {max_pool2d, avg_pool2d}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = pool(x, {}, {});
    EXPECT_EQ(y.shape(), (Shape{0, 2, 2, 2}));
    EXPECT_EQ(tape.gradient(y, {x})[0].shape(), x.shape());
  }
}

TEST(Pool2d, NamesWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        max_pool2d(zeros({4, 4, 2}));
      },
      throws<InvalidArgument>("[max_pool2d]", "[4, 4, 2]"));
  EXPECT_THAT(
      [] {
        avg_pool2d(zeros({1, 4, 4, 2}, DType::i32));
      },
      throws<InvalidArgument>("[avg_pool2d]", "i32[1, 4, 4, 2]"));
  EXPECT_THAT(
      [] {
        max_pool2d(zeros({1, 1, 4, 2}));
      },
      throws<InvalidArgument>("2x2", "[1, 1, 4, 2]", "fit"));
  EXPECT_THAT(
      [] {
        max_pool2d(zeros({1, 4, 4, 2}), {.window = 0});
      },
      throws<InvalidArgument>("0x0"));
  EXPECT_THAT(
      [] {
        max_pool2d(zeros({1, 4, 4, 2}), {.padding = {2, 0, 0, 0}});
      },
      throws<InvalidArgument>("padding", "{2, 0, 0, 0}", "[1, 4, 4, 2]"));
}

}  // namespace
}  // namespace lockstep
