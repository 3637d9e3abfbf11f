// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/conv.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/threads.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include "ops/convolution.h"
#include "ops/every_isa.h"
#include "ops/onednn.h"
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
  Shape x, w;
  Conv2dOptions options;
  std::int64_t out_h, out_w, pad_top, pad_left;  // worked out by hand from TensorFlow's rules
};

const Case kCases[] = {
    {"one pixel", {1, 1, 1, 1}, {1, 1, 1, 1}, {}, 1, 1, 0, 0},
    {"valid", {2, 5, 6, 3}, {3, 2, 3, 4}, {}, 3, 5, 0, 0},
    {"pointwise, strided", {2, 5, 5, 3}, {1, 1, 3, 7}, {.strides = 2}, 3, 3, 0, 0},
    {"same", {2, 5, 4, 3}, {3, 3, 3, 5}, {.padding = Padding::same}, 5, 4, 1, 1},
    {"same, even window", {1, 5, 4, 2}, {2, 4, 2, 3}, {.padding = Padding::same}, 5, 4, 0, 1},
    {"same, strided",
     {2, 7, 6, 2},
     {3, 3, 2, 4},
     {.strides = {2, 3}, .padding = Padding::same},
     4,
     2,
     1,
     0},
    {"same, stride beyond the window",
     {1, 7, 7, 2},
     {1, 2, 2, 3},
     {.strides = 3, .padding = Padding::same},
     3,
     3,
     0,
     0},
    {"given", {1, 4, 4, 2}, {3, 3, 2, 3}, {.padding = {2, 0, 1, 2}}, 4, 5, 2, 1},
    {"dilated", {2, 7, 8, 2}, {3, 2, 2, 3}, {.dilations = {2, 3}}, 3, 5, 0, 0},
    {"dilated, same",
     {1, 6, 6, 3},
     {3, 3, 3, 2},
     {.padding = Padding::same, .dilations = 2},
     6,
     6,
     2,
     2},
    {"grouped", {2, 5, 5, 6}, {3, 3, 2, 9}, {.padding = Padding::same, .groups = 3}, 5, 5, 1, 1},
    {"depthwise", {2, 5, 5, 4}, {3, 3, 1, 8}, {.strides = 2, .groups = 4}, 2, 2, 0, 0},
    {"widths of registers", {2, 6, 6, 16}, {3, 3, 16, 32}, {.padding = Padding::same}, 6, 6, 1, 1},
    {"off the widths of registers",
     {1, 9, 11, 17},
     {3, 3, 17, 19},
     {.padding = Padding::same},
     9,
     11,
     1,
     1},
};

// The definition, one sum per element, in double.
std::vector<double> reference(const Case& c, const std::vector<double>& x,
                              const std::vector<double>& w, const std::vector<double>& bias) {
  const auto [strides, padding, dilations, groups, activation] = c.options;
  const std::int64_t in = c.w[2], out = c.w[3];
  std::vector<double> y;
  for (std::int64_t n = 0; n < c.x[0]; ++n)
    for (std::int64_t r = 0; r < c.out_h; ++r)
      for (std::int64_t s = 0; s < c.out_w; ++s)
        for (std::int64_t o = 0; o < out; ++o) {
          double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
          for (std::int64_t i = 0; i < c.w[0]; ++i)
            for (std::int64_t j = 0; j < c.w[1]; ++j) {
              const std::int64_t row = r * strides.height + i * dilations.height - c.pad_top;
              const std::int64_t col = s * strides.width + j * dilations.width - c.pad_left;
              if (row < 0 || row >= c.x[1] || col < 0 || col >= c.x[2]) continue;
              for (std::int64_t k = 0; k < in; ++k) {
                const std::int64_t channel = o / (out / groups) * in + k;
                sum += x[static_cast<std::size_t>(((n * c.x[1] + row) * c.x[2] + col) * c.x[3] +
                                                  channel)] *
                       w[static_cast<std::size_t>(((i * c.w[1] + j) * in + k) * out + o)];
              }
            }
          y.push_back(activation == Activation::relu ? std::max(sum, 0.0) : sum);
        }
  return y;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

Tensor narrow(const Tensor& x, DType dtype) { return x.defined() ? cast(x, dtype) : x; }

void expect_definition(Case c, Activation activation, bool biased) {
  SCOPED_TRACE(c.name);
  c.options.activation = activation;
  const Tensor x = Noise(1).tensor<double>(c.x), w = Noise(2).tensor<double>(c.w);
  const Tensor bias = biased ? Noise(3).tensor<double>({c.w[3]}) : Tensor();
  const std::vector<double> expected =
      reference(c, x.to_vector<double>(), w.to_vector<double>(),
                biased ? bias.to_vector<double>() : std::vector<double>());
  const Tensor y = conv2d(x, w, bias, c.options);
  ASSERT_EQ(y.shape(), (Shape{c.x[0], c.out_h, c.out_w, c.w[3]}));
  expect_near(y, expected, 1e-13);
  const auto in = [&](DType dtype) {
    return conv2d(narrow(x, dtype), narrow(w, dtype), narrow(bias, dtype), c.options);
  };
  expect_near(in(DType::f32), expected, 3e-6);
  expect_near(in(DType::bf16), expected, 0.06);
  expect_near(in(DType::f16), expected, 0.008);
}

TEST(Conv2d, EqualsTheDefinition) {
  for (const Case& c : kCases)
    for (const Activation activation : {Activation::none, Activation::relu})
      for (const bool biased : {false, true}) expect_definition(c, activation, biased);
}

TEST(Conv2d, EqualsTheDefinitionUnderEachIsa) {
  under_each_isa([] {
    for (const Case& c : kCases) expect_definition(c, Activation::relu, true);
  });
}

TEST(Conv2d, GivesTheSameWithMoreThreads) {
  set_intra_op_threads(3);
  for (const Case& c : kCases) expect_definition(c, Activation::relu, true);
  set_intra_op_threads(1);
}

TEST(Conv2d, AppliesOtherActivations) {
  const Tensor x = Noise(1).tensor<double>({1, 3, 3, 1}), w = Noise(2).tensor<double>({2, 2, 1, 2});
  const Tensor z = conv2d(x, w, {}), y = conv2d(x, w, {}, {.activation = Activation::tanh});
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(y.data<double>()[i], std::tanh(z.data<double>()[i]), 1e-15);
}

TEST(Conv2d, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    if (c.w.num_elements() > 300) continue;
    SCOPED_TRACE(c.name);
    for (const Activation activation : {Activation::none, Activation::relu}) {
      Conv2dOptions options = c.options;
      options.activation = activation;
      expect_gradients([&](const auto& x) { return conv2d(x[0], x[1], x[2], options); },
                       {Noise(1).tensor<double>(c.x), Noise(2).tensor<double>(c.w),
                        Noise(3).tensor<double>({c.w[3]})},
                       1e-6);
    }
  }
}

TEST(Conv2d, SecondGradientsEqualDifferences) {
  const Conv2dOptions all{.strides = {2, 1},
                          .padding = Padding::same,
                          .dilations = {1, 2},
                          .groups = 2,
                          .activation = Activation::relu};
  expect_second_gradients([&](const auto& x) { return square(conv2d(x[0], x[1], x[2], all)); },
                          {Noise(1).tensor<double>({1, 4, 3, 2}),
                           Noise(2).tensor<double>({2, 2, 1, 2}), Noise(3).tensor<double>({2})},
                          1e-5);
}

// The ops of the gradients are linear in both arguments: their own gradients against differences.
TEST(Conv2d, GradientsOfGradientOpsEqualDifferences) {
  const Shape x{1, 4, 3, 2}, w{2, 2, 2, 3}, y{1, 2, 3, 3};
  const Conv2dOptions options{.strides = {2, 1}, .padding = Padding::same};
  expect_gradients([&](const auto& in) { return conv2d_input_gradient(in[0], in[1], x, options); },
                   {Noise(1).tensor<double>(y), Noise(2).tensor<double>(w)});
  expect_gradients([&](const auto& in) { return conv2d_weight_gradient(in[0], in[1], w, options); },
                   {Noise(1).tensor<double>(y), Noise(2).tensor<double>(x)});
}

// oneDNN's kernels for f32 and 16 bits against the columns of f64.
TEST(Conv2d, NarrowGradientsFollowDouble) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Conv2dOptions options = c.options;
    options.activation = Activation::relu;
    const std::vector<Tensor> inputs{Noise(1).tensor<double>(c.x), Noise(2).tensor<double>(c.w),
                                     Noise(3).tensor<double>({c.w[3]})};
    const Tensor dy = Noise(4).tensor<double>({c.x[0], c.out_h, c.out_w, c.w[3]});
    const auto gradients = [&](DType dtype) {
      GradientTape tape;
      std::vector<Tensor> x;
      for (const Tensor& input : inputs) tape.watch(x.emplace_back(cast(input, dtype)));
      return tape.gradient(conv2d(x[0], x[1], x[2], options), x,
                           {.target_gradient = cast(dy, dtype)});
    };
    const std::vector<Tensor> expected = gradients(DType::f64), floats = gradients(DType::f32);
    const std::vector<Tensor> brains = gradients(DType::bf16);
    for (std::size_t i = 0; i < 3; ++i) {
      expect_near(floats[i], expected[i].to_vector<double>(), 1e-5);
      EXPECT_EQ(brains[i].dtype(), DType::bf16);
      // A relu that bf16 decides otherwise moves single elements; most must agree.
      const std::vector<double> close = cast(brains[i], DType::f64).to_vector<double>();
      const std::vector<double> exact = expected[i].to_vector<double>();
      double error = 0, size = 0;
      for (std::size_t k = 0; k < exact.size(); ++k) {
        error += std::abs(close[k] - exact[k]);
        size += std::abs(exact[k]);
      }
      EXPECT_LT(error, 0.05 * size + 0.01) << "input " << i;
    }
  }
}

TEST(Conv2d, WeightGradientIsWrittenInPlace) {
  const Tensor x = Noise(1).tensor<float>({2, 5, 5, 16}),
               dy = Noise(2).tensor<float>({2, 3, 3, 16});
  const std::int64_t count = 3 * 3 * 16 * 16;
  const Buffer place = Buffer::allocate(Device{}, count * sizeof(float));
  Placement placement(place, DType::f32, count);
  EXPECT_EQ(conv2d_weight_gradient(dy, x, {3, 3, 16, 16}).raw_data(), place.data());
}

TEST(Conv2d, TakesNoImages) {
  const Tensor x = zeros({0, 4, 4, 2}), w = Noise(1).tensor<float>({3, 3, 2, 5}), bias = zeros({5});
  GradientTape tape;
  for (const Tensor* t : {&x, &w, &bias}) tape.watch(*t);
  const Tensor y = conv2d(x, w, bias, {.activation = Activation::relu});
  EXPECT_EQ(y.shape(), (Shape{0, 2, 2, 5}));
  const std::vector<Tensor> gradients = tape.gradient(y, {x, w, bias});
  EXPECT_EQ(gradients[0].shape(), x.shape());
  expect_near(gradients[1], std::vector<double>(90, 0.0), 0);
  expect_near(gradients[2], std::vector<double>(5, 0.0), 0);
}

// Steps far beyond the image: one window, of which one tap meets the image.
TEST(Conv2d, TakesStridesAndDilationsFarBeyondTheImage) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t far : {std::int64_t{1000}, std::int64_t{1} << 24}) {
      const Tensor x = full({1, 4, 5, 1}, 2, dtype), one = full({1, 1, 1, 1}, 3, dtype);
      const Tensor w = full({3, 3, 1, 1}, 3, dtype);
      expect_near(conv2d(x, one, {}, {.strides = far}), {6}, 0);
      expect_near(conv2d(x, one, {}, {.dilations = far}), std::vector<double>(20, 6), 0);
      expect_near(conv2d(x, w, {}, {.padding = Padding::same, .dilations = far}),
                  std::vector<double>(20, 6), 0);
    }
}

TEST(Conv2d, RefusesAbsurdWindows) {
  constexpr std::int64_t kMax = INT64_MAX;
  const Tensor x = zeros({2, 5, 5, 4}), w = zeros({3, 3, 4, 8});
  for (const std::int64_t absurd : {(std::int64_t{1} << 24) + 1, std::int64_t{1} << 40, kMax}) {
    const std::string number = std::to_string(absurd);
    for (const Padding padding : {Padding(absurd, absurd, 1, 1), Padding(0, 0, 0, absurd)})
      EXPECT_THAT([&] { conv2d(x, w, {}, {.padding = padding}); },
                  throws<InvalidArgument>("[conv2d]", "padding", number, "[2, 5, 5, 4]"));
    EXPECT_THAT([&] { conv2d(x, w, {}, {.strides = absurd}); },
                throws<InvalidArgument>("[conv2d]", "strides", number, "[2, 5, 5, 4]"));
    EXPECT_THAT([&] { conv2d(x, w, {}, {.dilations = absurd}); },
                throws<InvalidArgument>("[conv2d]", "dilations", number, "[2, 5, 5, 4]"));
    EXPECT_THAT([&] { max_pool2d(x, {.window = absurd}); },
                throws<InvalidArgument>("[max_pool2d]", "windows", number, "[2, 5, 5, 4]"));
  }
}

#if LOCKSTEP_WITH_ONEDNN
// Whatever else oneDNN refuses is our mistake, and is told with what it was given.
TEST(Conv2d, FailuresOfOneDnnNameTheOpAndItsShapes) {
  const Convolution wrong{.batch = 2,
                          .in_h = 5,
                          .in_w = 5,
                          .in_c = 3,
                          .out_h = 9,
                          .out_w = 9,
                          .out_c = 7,
                          .kernel_h = 3,
                          .kernel_w = 3};
  std::vector<float> memory(4096);
  EXPECT_THAT(
      [&] {
        onednn::convolve(wrong, DType::f32, Device{}, memory.data(), memory.data(), nullptr, false,
                         memory.data());
      },
      throws<InternalError>("[conv2d] oneDNN", "f32 images [2, 5, 5, 3]", "kernels [3, 3, 3, 7]",
                            "result [2, 9, 9, 7]"));
}
#endif

TEST(Conv2d, NamesWhatDoesNotFit) {
  const Tensor x = zeros({2, 5, 5, 4}), w = zeros({3, 3, 4, 8});
  EXPECT_THAT(
      [&] {
        conv2d(zeros({5, 5, 4}), w, {});
      },
      throws<InvalidArgument>("[conv2d]", "[5, 5, 4]", "[3, 3, 4, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d(x, zeros({3, 3, 5, 8}), {});
      },
      throws<InvalidArgument>("[2, 5, 5, 4]", "[3, 3, 5, 8]"));
  EXPECT_THAT([&] { conv2d(x, w, {}, {.groups = 3}); },
              throws<InvalidArgument>("groups", "[2, 5, 5, 4]", "[3, 3, 4, 8]", "3"));
  EXPECT_THAT([&] { conv2d(x, w, zeros({4})); }, throws<InvalidArgument>("[8]", "[4]"));
  EXPECT_THAT(
      [&] {
        conv2d(x, zeros({6, 3, 4, 8}), {});
      },
      throws<InvalidArgument>("6x3", "[2, 5, 5, 4]", "fit"));
  EXPECT_THAT([&] { conv2d(x, w, {}, {.strides = 0}); }, throws<InvalidArgument>("strides", "0x0"));
  EXPECT_THAT(
      [&] {
        conv2d(x, w, {}, {.padding = {0, -1, 0, 0}});
      },
      throws<InvalidArgument>("padding", "-1"));
  EXPECT_THAT(
      [&] {
        conv2d(x, zeros({3, 3, 4, 8}, DType::f64), {});
      },
      throws<InvalidArgument>("f32[2, 5, 5, 4]", "f64[3, 3, 4, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d_input_gradient(zeros({2, 5, 5, 8}), w, x.shape());
      },
      throws<InvalidArgument>("[conv2d_input_gradient]", "[2, 3, 3, 8]", "[2, 5, 5, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d_weight_gradient(zeros({2, 5, 5, 8}), x, w.shape());
      },
      throws<InvalidArgument>("[conv2d_weight_gradient]", "[2, 3, 3, 8]", "[2, 5, 5, 8]"));
}

}  // namespace
}  // namespace lockstep
