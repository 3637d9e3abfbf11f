// SPDX-License-Identifier: Apache-2.0
// Convolution layers besides Conv2D. What they compute is compared in golden_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/gradient_check.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::Noise;
using lockstep::testing::throws;
using ::testing::ElementsAre;

Initializer values(std::vector<float> numbers) {
  return [numbers](const Shape& shape, DType) {
    return Tensor(shape, std::span<const float>(numbers));
  };
}

TEST(Conv1D, SlidesItsKernelOverTheSequence) {
  const Conv1D layer(
      1, 1,
      {.kernel_size = 2, .kernel_initializer = values({1, 10}), .bias_initializer = constant(0.5)});
  EXPECT_EQ(layer.kernel().name(), "conv1d/kernel");
  EXPECT_EQ(layer.kernel().shape(), Shape({2, 1, 1}));
  // x[i] + 10 x[i + 1] + 1/2
  const Tensor y = layer(Tensor({1, 4, 1}, {1.0f, 2.0f, 3.0f, 4.0f}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(21.5f, 32.5f, 43.5f));
  EXPECT_EQ(layer(lockstep::zeros({0, 4, 1})).shape(), Shape({0, 3, 1}));
}

TEST(Conv3D, SumsWhatItsKernelCovers) {
  const Conv3D layer(2, 1,
                     {.kernel_size = {1, 2, 3}, .use_bias = false, .kernel_initializer = ones});
  EXPECT_EQ(layer.kernel().shape(), Shape({1, 2, 3, 2, 1}));
  const Tensor y = layer(lockstep::ones({1, 2, 2, 4, 2}));
  EXPECT_EQ(y.shape(), Shape({1, 2, 1, 2, 1}));
  EXPECT_THAT(y.to_vector<float>(), ::testing::Each(12));
}

TEST(Conv1DTranspose, SpreadsEachElementOverItsKernel) {
  const Conv1DTranspose layer(1, 1,
                              {.kernel_size = 3,
                               .strides = 2,
                               .use_bias = false,
                               .kernel_initializer = values({1, 10, 100})});
  // 1 and 2, two apart.
  const Tensor y = layer(Tensor({1, 2, 1}, {1.0f, 2.0f}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 10, 102, 20, 200));
  EXPECT_EQ(layer.kernel().name(), "conv1d_transpose/kernel");
}

TEST(ConvTranspose, ChannelsAndExtents) {
  const Conv2DTranspose same(6, 4, {.strides = 2, .padding = Padding::same, .groups = 2});
  EXPECT_EQ(same.kernel().shape(), Shape({3, 3, 2, 6}));
  EXPECT_EQ(same.input_size(), 6);
  EXPECT_EQ(same.output_size(6), 4);
  EXPECT_EQ(same(lockstep::zeros({2, 5, 8, 6})).shape(), Shape({2, 10, 16, 4}));
  EXPECT_EQ(same(lockstep::zeros({0, 5, 8, 6})).shape(), Shape({0, 10, 16, 4}));
  const Conv2DTranspose padded(
      3, 1, {.strides = {2, 3}, .padding = Padding::same, .output_padding = Size2d(1, 0)});
  // (5 - 1) 2 + 3 - 2 + 1 and (8 - 1) 3 + 3 - 2 + 0
  EXPECT_EQ(padded(lockstep::zeros({1, 5, 8, 3})).shape(), Shape({1, 10, 22, 1}));
  const Conv3DTranspose volume(1, 2, {.kernel_size = 2, .strides = 2});
  EXPECT_EQ(volume(lockstep::zeros({1, 2, 3, 4, 1})).shape(), Shape({1, 4, 6, 8, 2}));
}

TEST(DepthwiseConv, KeepsChannelsApart) {
  const DepthwiseConv2D layer(2, {.kernel_size = 1,
                                  .depth_multiplier = 2,
                                  .use_bias = false,
                                  .depthwise_initializer = values({1, 2, 3, 4})});
  EXPECT_EQ(layer.kernel().shape(), Shape({1, 1, 2, 2}));
  EXPECT_EQ(layer.output_size(2), 4);
  EXPECT_THAT(layer(Tensor({1, 1, 1, 2}, {1.0f, 10.0f})).to_vector<float>(),
              ElementsAre(1, 2, 30, 40));
  const DepthwiseConv1D line(
      2, {.kernel_size = 2, .use_bias = false, .depthwise_initializer = values({1, 2, 3, 4})});
  EXPECT_EQ(line.kernel().shape(), Shape({2, 2, 1}));
  // Channel 0: 1 x[i] + 3 x[i + 1]; channel 1: 2 x[i] + 4 x[i + 1].
  const Tensor y = line(Tensor({1, 3, 2}, {1.0f, 10.0f, 2.0f, 20.0f, 3.0f, 30.0f}));
  EXPECT_EQ(y.shape(), Shape({1, 2, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(7, 100, 11, 160));
  EXPECT_EQ(DepthwiseConv1D(1, {.padding = {2, 0}})(lockstep::zeros({1, 4, 1})).shape(),
            Shape({1, 4, 1}));
}

// Generators and critics with gradient penalties differentiate twice.
TEST(ConvLayers, HaveGradientsOfGradients) {
  const auto of = [](std::uint64_t seed) -> Initializer {
    return [seed](const Shape& shape, DType) { return Noise(seed).tensor<double>(shape); };
  };
  const Conv2D down(2, 2,
                    {.kernel_size = 2,
                     .strides = 2,
                     .activation = tanh,
                     .kernel_initializer = of(1),
                     .dtype = DType::f64});
  const Conv2DTranspose up(2, 1,
                           {.kernel_size = 2,
                            .strides = 2,
                            .activation = tanh,
                            .kernel_initializer = of(2),
                            .dtype = DType::f64});
  lockstep::testing::expect_second_gradients(
      [&](const std::vector<Tensor>& x) { return up(down(x[0])); },
      {Noise(3).tensor<double>({1, 4, 4, 2})});
}

TEST(ConvLayers, ObeyMixedPolicies) {
  const PolicyScope mixed(mixed_float16);
  const auto expect_mixed = [](const auto& layer, const Tensor& x) {
    GradientTape tape;
    const Tensor y = layer(x);
    EXPECT_EQ(y.dtype(), DType::f16) << layer.name();
    for (const Tensor& gradient : tape.gradient(y, layer.trainable_variables()))
      EXPECT_EQ(gradient.dtype(), DType::f32) << layer.name();
  };
  expect_mixed(Conv1D(2, 3), lockstep::ones({1, 4, 2}));
  expect_mixed(Conv3D(2, 3), lockstep::ones({1, 3, 3, 3, 2}));
  expect_mixed(Conv1DTranspose(2, 3), lockstep::ones({1, 4, 2}));
  expect_mixed(Conv2DTranspose(2, 3), lockstep::ones({1, 4, 4, 2}));
  expect_mixed(Conv3DTranspose(2, 3), lockstep::ones({1, 2, 2, 2, 2}));
  expect_mixed(DepthwiseConv1D(2), lockstep::ones({1, 4, 2}));
  expect_mixed(DepthwiseConv2D(2), lockstep::ones({1, 4, 4, 2}));
}

TEST(ConvLayers, NameThemselvesWhenTheInputDoesNotFit) {
  const Tensor x = lockstep::zeros({8, 8, 3});
  EXPECT_THAT([&] { Conv1D(4, 8, {.name = "stem"})(x); },
              throws<InvalidArgument>("[stem]", "4 values", "f32[8, 8, 3]"));
  EXPECT_THAT([&] { Conv3D(3, 8)(x); }, throws<InvalidArgument>("[conv3d]", "rank 5"));
  EXPECT_THAT([&] { Conv2DTranspose(3, 8)(x); },
              throws<InvalidArgument>("[conv2d_transpose]", "rank 4"));
  EXPECT_THAT(
      [&] {
        DepthwiseConv1D(3)(lockstep::zeros({2, 8, 3}, DType::f64));
      },
      throws<InvalidArgument>("[depthwise_conv1d]", "f64"));
}

TEST(ConvLayers, RefuseSizesThatCannotBe) {
  EXPECT_THAT([] { Conv1D(0, 8); }, throws<InvalidArgument>("[Conv1D]", "channel counts", "0"));
  EXPECT_THAT(
      [] {
        Conv3D(1, 8, {.kernel_size = {1, 0, 1}});
      },
      throws<InvalidArgument>("[Conv3D]", "kernel size", "[1, 0, 1]"));
  EXPECT_THAT([] { Conv1DTranspose(1, 8, {.strides = -1}); },
              throws<InvalidArgument>("[Conv1DTranspose]", "strides", "-1"));
  EXPECT_THAT([] { Conv2DTranspose(4, 6, {.groups = 4}); },
              throws<InvalidArgument>("[Conv2DTranspose]", "4 groups"));
  EXPECT_THAT([] { Conv2DTranspose(1, 1, {.strides = 2, .output_padding = Size2d(2)}); },
              throws<InvalidArgument>("output padding", "stride of 2", "got 2"));
  EXPECT_THAT(
      [] {
        Conv1DTranspose(1, 1, {.padding = {1, 1}, .output_padding = 0});
      },
      throws<InvalidArgument>("`valid` or `same`"));
  EXPECT_THAT(
      [] {
        Conv1DTranspose(1, 1, {.kernel_size = 4, .padding = Padding::same, .output_padding = 0})(
            lockstep::zeros({1, 1, 1}));
      },
      throws<InvalidArgument>("gives no result"));
  EXPECT_THAT([] { DepthwiseConv2D(3, {.depth_multiplier = 0}); },
              throws<InvalidArgument>("[DepthwiseConv2D]"));
  EXPECT_THAT(
      [] {
        DepthwiseConv1D(3, {.padding = {1, 1, 1, 1}});
      },
      throws<InvalidArgument>("[DepthwiseConv1D]", "2 axes"));
}

}  // namespace
}  // namespace lockstep::nn
