// SPDX-License-Identifier: Apache-2.0
// Convolutions of one and three axes, of single channels, and transposed ones.
#include <lockstep/ops/conv.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/threads.h>
#include <lockstep/tensor/factory.h>

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

// Extents and padding along depth, height and width were worked out by hand from TensorFlow's rules;
// they are 1 and 0 for axes that there are not.
struct Case {
  const char* name;
  Shape x, w;
  Size3d strides = 1, dilations = 1;
  Padding padding = Padding::valid;
  std::int64_t groups = 1;
  Size3d in = 1, kernel = 1, out = 1, before = 0;
  Size3d size = 0;  // of the result, for transposed convolutions

  int axes() const { return x.rank() - 2; }
};

const Case kCases[] = {
    {"1: one element", {1, 1, 1}, {1, 1, 1}},
    {.name = "1: valid",
     .x = {2, 7, 3},
     .w = {3, 3, 4},
     .in = {1, 1, 7},
     .kernel = {1, 1, 3},
     .out = {1, 1, 5}},
    {.name = "1: same, strided",
     .x = {2, 8, 3},
     .w = {4, 3, 2},
     .strides = {1, 1, 3},
     .padding = Padding::same,
     .in = {1, 1, 8},
     .kernel = {1, 1, 4},
     .out = {1, 1, 3},
     .before = {0, 0, 1}},
    {.name = "1: causal, dilated, grouped",
     .x = {1, 9, 4},
     .w = {3, 2, 6},
     .dilations = {1, 1, 2},
     .padding = {4, 0},
     .groups = 2,
     .in = {1, 1, 9},
     .kernel = {1, 1, 3},
     .out = {1, 1, 9},
     .before = {0, 0, 4}},
    {"3: one element", {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
    {.name = "3: valid",
     .x = {2, 3, 5, 4, 2},
     .w = {2, 3, 2, 2, 3},
     .in = {3, 5, 4},
     .kernel = {2, 3, 2},
     .out = {2, 3, 3}},
    {.name = "3: same, strided",
     .x = {1, 5, 4, 6, 3},
     .w = {3, 3, 2, 3, 4},
     .strides = {2, 1, 3},
     .padding = Padding::same,
     .in = {5, 4, 6},
     .kernel = {3, 3, 2},
     .out = {3, 4, 2},
     .before = {1, 1, 0}},
    {.name = "3: given, dilated, grouped",
     .x = {2, 4, 5, 4, 4},
     .w = {2, 2, 2, 2, 6},
     .dilations = {2, 1, 3},
     .padding = {1, 0, 0, 2, 1, 1},
     .groups = 2,
     .in = {4, 5, 4},
     .kernel = {2, 2, 2},
     .out = {3, 6, 3},
     .before = {1, 0, 1}},
    {.name = "1: of each channel",
     .x = {2, 9, 19},
     .w = {3, 1, 19},
     .strides = {1, 1, 2},
     .padding = {1, 0},
     .groups = 19,
     .in = {1, 1, 9},
     .kernel = {1, 1, 3},
     .out = {1, 1, 4},
     .before = {0, 0, 1}},
    {.name = "3: of each channel",
     .x = {1, 3, 4, 5, 17},
     .w = {2, 3, 2, 1, 17},
     .dilations = {1, 1, 2},
     .padding = Padding::same,
     .groups = 17,
     .in = {3, 4, 5},
     .kernel = {2, 3, 2},
     .out = {3, 4, 5},
     .before = {0, 1, 1}},
    {.name = "3: widths of registers",
     .x = {1, 3, 5, 5, 16},
     .w = {3, 3, 3, 16, 32},
     .padding = Padding::same,
     .in = {3, 5, 5},
     .kernel = {3, 3, 3},
     .out = {3, 5, 5},
     .before = {1, 1, 1}},
};

Conv1dOptions options1(const Case& c, Activation activation) {
  return {c.strides.width, c.padding, c.dilations.width, c.groups, activation};
}
Conv3dOptions options3(const Case& c, Activation activation) {
  return {c.strides, c.padding, c.dilations, c.groups, activation};
}
Tensor run(const Case& c, const Tensor& x, const Tensor& w, const Tensor& bias,
           Activation activation = Activation::none) {
  return c.axes() == 1 ? conv1d(x, w, bias, options1(c, activation))
                       : conv3d(x, w, bias, options3(c, activation));
}

// Calls f(offset in x, in w, in y) for every product of the convolution.
template <class F>
void for_each_product(const Case& c, F&& f) {
  const std::int64_t channels = c.x.dim(-1), in = c.w.dim(-2), out = c.w.dim(-1);
  const auto reads = [](std::int64_t place, std::int64_t tap, std::int64_t stride,
                        std::int64_t dilation, std::int64_t before, std::int64_t extent) {
    const std::int64_t at = place * stride + tap * dilation - before;
    return at >= 0 && at < extent ? at : -1;
  };
  for (std::int64_t n = 0; n < c.x[0]; ++n)
    for (std::int64_t p = 0; p < c.out.depth * c.out.height * c.out.width; ++p)
      for (std::int64_t t = 0; t < c.kernel.depth * c.kernel.height * c.kernel.width; ++t) {
        const std::int64_t s = p % c.out.width, r = p / c.out.width % c.out.height,
                           q = p / c.out.width / c.out.height;
        const std::int64_t j = t % c.kernel.width, i = t / c.kernel.width % c.kernel.height,
                           h = t / c.kernel.width / c.kernel.height;
        const std::int64_t depth = reads(q, h, c.strides.depth, c.dilations.depth, c.before.depth,
                                         c.in.depth),
                           row = reads(r, i, c.strides.height, c.dilations.height, c.before.height,
                                       c.in.height),
                           col = reads(s, j, c.strides.width, c.dilations.width, c.before.width,
                                       c.in.width);
        if (depth < 0 || row < 0 || col < 0) continue;
        const std::int64_t from =
            (((n * c.in.depth + depth) * c.in.height + row) * c.in.width + col) * channels;
        const std::int64_t to = (n * c.out.depth * c.out.height * c.out.width + p) * out;
        for (std::int64_t o = 0; o < out; ++o)
          for (std::int64_t k = 0; k < in; ++k)
            f(static_cast<std::size_t>(from + o / (out / c.groups) * in + k),
              static_cast<std::size_t>((t * in + k) * out + o), static_cast<std::size_t>(to + o));
      }
}

Shape result_shape(const Case& c, const Size3d& size, std::int64_t channels) {
  return c.axes() == 1 ? Shape{c.x[0], size.width, channels}
                       : Shape{c.x[0], size.depth, size.height, size.width, channels};
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

constexpr std::pair<DType, double> kTolerances[] = {
    {DType::f64, 1e-12}, {DType::f32, 1e-5}, {DType::bf16, 0.08}, {DType::f16, 0.01}};

// Values, and for f64 and f32 gradients, against sums in double.
void expect_definition(const Case& c) {
  SCOPED_TRACE(c.name);
  const std::int64_t out = c.w.dim(-1);
  const Tensor x = Noise(1).tensor<double>(c.x), w = Noise(2).tensor<double>(c.w),
               bias = Noise(3).tensor<double>({out});
  const Shape shape = result_shape(c, c.out, out);
  const Tensor dy = Noise(4).tensor<double>(shape);
  std::vector<double> y(static_cast<std::size_t>(shape.num_elements())),
      dx(static_cast<std::size_t>(c.x.num_elements())),
      dw(static_cast<std::size_t>(c.w.num_elements()));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = bias.data<double>()[i % static_cast<std::size_t>(out)];
  const std::span<const double> from = x.data<double>(), kernels = w.data<double>(),
                                gradient = dy.data<double>();
  for_each_product(c, [&](std::size_t i, std::size_t k, std::size_t o) {
    y[o] += from[i] * kernels[k];
    dx[i] += gradient[o] * kernels[k];
    dw[k] += gradient[o] * from[i];
  });
  for (const auto& [dtype, tolerance] : kTolerances) {
    SCOPED_TRACE(name_of(dtype));
    const Tensors in{cast(x, dtype), cast(w, dtype), cast(bias, dtype)};
    GradientTape tape;
    for (const Tensor& each : in) tape.watch(each);
    const Tensor found = run(c, in[0], in[1], in[2]);
    ASSERT_EQ(found.shape(), shape);
    expect_near(found, y, tolerance);
    const Tensors gradients = tape.gradient(found, in, {.target_gradient = cast(dy, dtype)});
    expect_near(gradients[0], dx, tolerance);
    expect_near(gradients[1], dw, 4 * tolerance);
    std::vector<double> positive = y;
    for (double& each : positive) each = std::max(each, 0.0);
    expect_near(run(c, in[0], in[1], in[2], Activation::relu), positive, tolerance);
  }
}

TEST(ConvAxes, EqualTheDefinition) {
  under_each_isa([] {
    for (const Case& c : kCases) expect_definition(c);
  });
}

TEST(ConvAxes, GiveTheSameWithMoreThreads) {
  set_intra_op_threads(3);
  for (const Case& c : kCases) expect_definition(c);
  set_intra_op_threads(1);
}

TEST(ConvAxes, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    if (c.w.num_elements() > 200) continue;
    SCOPED_TRACE(c.name);
    expect_gradients([&](const Tensors& t) { return run(c, t[0], t[1], t[2], Activation::relu); },
                     {Noise(1).tensor<double>(c.x), Noise(2).tensor<double>(c.w),
                      Noise(3).tensor<double>({c.w.dim(-1)})});
  }
}

TEST(ConvAxes, SecondGradientsEqualDifferences) {
  expect_second_gradients(
      [](const Tensors& t) {
        return square(conv1d(t[0], t[1], t[2], {.strides = 2, .padding = Padding::same}));
      },
      {Noise(1).tensor<double>({1, 5, 2}), Noise(2).tensor<double>({3, 2, 2}),
       Noise(3).tensor<double>({2})});
  expect_second_gradients(
      [](const Tensors& t) {
        return square(conv3d(t[0], t[1], {}, {.strides = {1, 2, 1}, .padding = Padding::same}));
      },
      {Noise(1).tensor<double>({1, 2, 3, 2, 1}), Noise(2).tensor<double>({2, 1, 2, 1, 2})});
}

TEST(ConvAxes, GradientsOfGradientOpsEqualDifferences) {
  const Shape x1{1, 6, 2}, w1{3, 2, 3}, y1{1, 3, 3};
  const Conv1dOptions one{.strides = 2, .padding = Padding::same};
  expect_gradients([&](const Tensors& t) { return conv1d_input_gradient(t[0], t[1], x1, one); },
                   {Noise(1).tensor<double>(y1), Noise(2).tensor<double>(w1)});
  expect_gradients([&](const Tensors& t) { return conv1d_weight_gradient(t[0], t[1], w1, one); },
                   {Noise(1).tensor<double>(y1), Noise(2).tensor<double>(x1)});
  const Shape x3{1, 2, 3, 3, 1}, w3{2, 2, 2, 1, 2}, y3{1, 1, 2, 2, 2};
  expect_gradients([&](const Tensors& t) { return conv3d_input_gradient(t[0], t[1], x3); },
                   {Noise(1).tensor<double>(y3), Noise(2).tensor<double>(w3)});
  expect_gradients([&](const Tensors& t) { return conv3d_weight_gradient(t[0], t[1], w3); },
                   {Noise(1).tensor<double>(y3), Noise(2).tensor<double>(x3)});
}

TEST(ConvAxes, TakeNoImages) {
  for (const auto& [x, w] :
       {std::pair{Shape{0, 5, 2}, Shape{3, 2, 4}}, {Shape{0, 4, 5, 6, 2}, Shape{2, 2, 2, 2, 4}}}) {
    const Tensor images = zeros(x), kernels = Noise(1).tensor<float>(w), bias = zeros({4});
    GradientTape tape;
    for (const Tensor* t : {&images, &kernels, &bias}) tape.watch(*t);
    const Tensor y = x.rank() == 3 ? conv1d(images, kernels, bias) : conv3d(images, kernels, bias);
    EXPECT_EQ(y.dim(0), 0);
    const Tensors gradients = tape.gradient(y, {images, kernels, bias});
    EXPECT_EQ(gradients[0].shape(), x);
    expect_near(gradients[1], std::vector<double>(static_cast<std::size_t>(w.num_elements())), 0);
  }
}

// ---- depthwise

TEST(DepthwiseConv2d, IsAConvolutionOfEachChannel) {
  for (const std::int64_t multiplier : {1, 3})
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Conv2dOptions options{.strides = {2, 1}, .padding = Padding::same, .dilations = {1, 2}};
      const Tensor x = cast(Noise(1).tensor<double>({2, 5, 6, 4}), dtype),
                   w = cast(Noise(2).tensor<double>({3, 2, 4, multiplier}), dtype);
      const Tensor y = depthwise_conv2d(x, w, {}, options);
      Tensors parts;
      for (std::int64_t k = 0; k < 4; ++k)
        parts.push_back(conv2d(slice(x, {0, 0, 0, k}, {2, 5, 6, 1}),
                               slice(w, {0, 0, k, 0}, {3, 2, 1, multiplier}), {}, options));
      const Tensor expected = concat(parts, 3);
      ASSERT_EQ(y.shape(), expected.shape());
      expect_near(y, cast(expected, DType::f64).to_vector<double>(),
                  dtype == DType::f64   ? 1e-14
                  : dtype == DType::f32 ? 1e-6
                                        : 0.01);
    }
}

TEST(DepthwiseConv2d, GradientsEqualDifferences) {
  expect_gradients(
      [](const Tensors& t) {
        return depthwise_conv2d(t[0], t[1], t[2], {.strides = 2, .activation = Activation::tanh});
      },
      {Noise(1).tensor<double>({2, 4, 5, 3}), Noise(2).tensor<double>({2, 2, 3, 2}),
       Noise(3).tensor<double>({6})});
  expect_second_gradients(
      [](const Tensors& t) { return square(depthwise_conv2d(t[0], t[1], {})); },
      {Noise(1).tensor<double>({1, 3, 2, 2}), Noise(2).tensor<double>({2, 1, 2, 1})});
}

// ---- transposed: x has the extents `out` of a case, the result `in`

const Case kTransposed[] = {
    {.name = "1: valid",
     .x = {2, 3, 2},
     .w = {3, 4, 2},
     .strides = {1, 1, 2},
     .in = {1, 1, 7},
     .kernel = {1, 1, 3},
     .out = {1, 1, 3}},
    {.name = "1: valid, stride beyond the window",
     .x = {1, 3, 2},
     .w = {1, 1, 2},
     .strides = {1, 1, 2},
     .in = {1, 1, 6},
     .out = {1, 1, 3}},
    {.name = "2: same",
     .x = {2, 3, 2, 3},
     .w = {3, 3, 4, 3},
     .strides = {1, 2, 2},
     .padding = Padding::same,
     .in = {1, 6, 4},
     .kernel = {1, 3, 3},
     .out = {1, 3, 2}},
    {.name = "2: same, size",
     .x = {1, 3, 2, 3},
     .w = {3, 2, 2, 3},
     .strides = {1, 2, 3},
     .padding = Padding::same,
     .in = {1, 5, 5},
     .kernel = {1, 3, 2},
     .out = {1, 3, 2},
     .before = {0, 1, 0},
     .size = {1, 5, 5}},
    {.name = "2: given, dilated, grouped",
     .x = {2, 3, 3, 4},
     .w = {2, 3, 3, 4},
     .dilations = {1, 1, 2},
     .padding = {1, 0, 0, 2},
     .groups = 2,
     .in = {1, 3, 5},
     .kernel = {1, 2, 3},
     .out = {1, 3, 3},
     .before = {0, 1, 0}},
    {.name = "3: valid",
     .x = {1, 2, 1, 2, 3},
     .w = {2, 2, 3, 2, 3},
     .strides = {2, 1, 2},
     .in = {4, 2, 5},
     .kernel = {2, 2, 3},
     .out = {2, 1, 2}},
};

Tensor run_transposed(const Case& c, const Tensor& x, const Tensor& w, const Tensor& bias,
                      Activation activation = Activation::none) {
  switch (c.axes()) {
    case 1:
      return conv1d_transpose(
          x, w, bias,
          {c.strides.width, c.padding, c.dilations.width, c.groups, c.size.width, activation});
    case 2:
      return conv2d_transpose(x, w, bias,
                              {{c.strides.height, c.strides.width},
                               c.padding,
                               {c.dilations.height, c.dilations.width},
                               c.groups,
                               {c.size.height, c.size.width},
                               activation});
    default:
      return conv3d_transpose(x, w, bias,
                              {c.strides, c.padding, c.dilations, c.groups, c.size, activation});
  }
}

TEST(ConvTranspose, SpreadsEachPixelOverItsWindow) {
  for (const Case& c : kTransposed) {
    SCOPED_TRACE(c.name);
    const std::int64_t channels = c.w.dim(-2) * c.groups;
    Case plain = c;  // the convolution that leads back
    const Tensor x = Noise(1).tensor<double>(c.x), w = Noise(2).tensor<double>(c.w),
                 bias = Noise(3).tensor<double>({channels});
    const Shape shape = c.axes() == 2 ? Shape{c.x[0], c.in.height, c.in.width, channels}
                                      : result_shape(c, c.in, channels);
    plain.x = shape;
    std::vector<double> expected(static_cast<std::size_t>(shape.num_elements()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = bias.data<double>()[i % static_cast<std::size_t>(channels)];
    for_each_product(plain, [&](std::size_t i, std::size_t k, std::size_t o) {
      expected[i] += x.data<double>()[o] * w.data<double>()[k];
    });
    for (const auto& [dtype, tolerance] : kTolerances) {
      const Tensor y = run_transposed(c, cast(x, dtype), cast(w, dtype), cast(bias, dtype));
      ASSERT_EQ(y.shape(), shape);
      expect_near(y, expected, tolerance);
    }
    expect_gradients(
        [&](const Tensors& t) { return run_transposed(c, t[0], t[1], t[2], Activation::sigmoid); },
        {x, w, bias});
  }
}

TEST(ConvTranspose, SecondGradientsEqualDifferences) {
  expect_second_gradients(
      [](const Tensors& t) { return square(conv2d_transpose(t[0], t[1], t[2], {.strides = 2})); },
      {Noise(1).tensor<double>({1, 2, 1, 2}), Noise(2).tensor<double>({2, 2, 1, 2}),
       Noise(3).tensor<double>({1})});
}

TEST(ConvTranspose, TakesNoImages) {
  const Tensor x = zeros({0, 2, 2, 3}), w = zeros({3, 3, 4, 3});
  EXPECT_EQ(conv2d_transpose(x, w, zeros({4}), {.strides = 2, .padding = Padding::same}).shape(),
            (Shape{0, 4, 4, 4}));
}

// ---- misuse

TEST(ConvAxes, NameWhatDoesNotFit) {
  const Tensor x1 = zeros({2, 5, 4}), w1 = zeros({3, 4, 8}), x2 = zeros({2, 5, 5, 4}),
               w2 = zeros({3, 3, 4, 8}), x3 = zeros({2, 5, 5, 5, 4}), w3 = zeros({3, 3, 3, 4, 8});
  EXPECT_THAT([&] { conv1d(x2, w2, {}); },
              throws<InvalidArgument>("[conv1d]", "[2, 5, 5, 4]", "[3, 3, 4, 8]"));
  EXPECT_THAT(
      [&] {
        conv1d(x1, zeros({3, 5, 8}), {});
      },
      throws<InvalidArgument>("[conv1d]", "[2, 5, 4]", "[3, 5, 8]"));
  EXPECT_THAT([&] { conv1d(x1, w1, zeros({4})); },
              throws<InvalidArgument>("[conv1d]", "[8]", "[4]"));
  EXPECT_THAT([&] { conv1d(x1, w1, {}, {.strides = 0}); },
              throws<InvalidArgument>("[conv1d]", "strides", "3, 0 and 1"));
  EXPECT_THAT(
      [&] {
        conv1d(x1, w1, {}, {.padding = {1, 1, 1, 1}});
      },
      throws<InvalidArgument>("[conv1d]", "1 axes", "{1, 1, 1, 1}", "[2, 5, 4]"));
  EXPECT_THAT(
      [&] {
        conv2d(x2, w2, {}, {.padding = {1, 1}});
      },
      throws<InvalidArgument>("[conv2d]", "2 axes", "{1, 1}"));
  EXPECT_THAT([&] { conv1d(x1, cast(w1, DType::f64), {}); },
              throws<InvalidArgument>("[conv1d]", "f32[2, 5, 4]", "f64[3, 4, 8]"));
  EXPECT_THAT(
      [&] {
        conv3d(x3, zeros({6, 3, 3, 4, 8}), {});
      },
      throws<InvalidArgument>("[conv3d]", "6x3x3", "[2, 5, 5, 5, 4]", "fit"));
  EXPECT_THAT(
      [&] {
        conv3d(x3, w3, {}, {.padding = {0, 0, 0, -1, 0, 0}});
      },
      throws<InvalidArgument>("[conv3d]", "{0, 0, 0, -1, 0, 0}"));
  EXPECT_THAT([&] { conv3d(x3, w3, {}, {.groups = 3}); },
              throws<InvalidArgument>("[conv3d]", "groups", "3"));
  EXPECT_THAT(
      [&] {
        conv3d_input_gradient(zeros({2, 5, 5, 5, 8}), w3, x3.shape());
      },
      throws<InvalidArgument>("[conv3d_input_gradient]", "[2, 3, 3, 3, 8]"));
  EXPECT_THAT(
      [&] {
        conv1d_weight_gradient(zeros({2, 5, 8}), x1, w1.shape());
      },
      throws<InvalidArgument>("[conv1d_weight_gradient]", "[2, 3, 8]", "[2, 5, 8]"));
  EXPECT_THAT(
      [&] {
        depthwise_conv2d(x2, zeros({3, 3, 5, 1}), {});
      },
      throws<InvalidArgument>("[depthwise_conv2d]", "[2, 5, 5, 4]", "[3, 3, 5, 1]"));
  EXPECT_THAT([&] { conv2d_transpose(x2, w2, {}); },
              throws<InvalidArgument>("[conv2d_transpose]", "[2, 5, 5, 4]", "[3, 3, 4, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d_transpose(x2, zeros({3, 3, 8, 4}), zeros({4}));
      },
      throws<InvalidArgument>("[conv2d_transpose]", "[8]", "[4]"));
  EXPECT_THAT(
      [&] {
        conv2d_transpose(x2, zeros({3, 3, 8, 4}), {}, {.output_size = {7, 9}});
      },
      throws<InvalidArgument>("[conv2d_transpose]", "7x9", "[2, 5, 5, 4]"));
  EXPECT_THAT(
      [&] {
        conv2d_transpose(x2, zeros({3, 3, 8, 4}), {}, {.padding = {9, 9, 0, 0}});
      },
      throws<InvalidArgument>("[conv2d_transpose]", "[2, 5, 5, 4]"));
}

}  // namespace
}  // namespace lockstep
