// SPDX-License-Identifier: Apache-2.0
// Normalisations of each example by itself. What they compute is compared in golden_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/gradient_check.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::Noise;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Initializer noise(std::uint64_t seed) {
  return [seed](const Shape& shape, DType) { return Noise(seed).tensor<double>(shape); };
}

TEST(LayerNorm, NormalisesEachRow) {
  const LayerNorm layer(2, {.epsilon = 0, .beta_initializer = constant(10)});
  EXPECT_EQ(layer.gamma()->name(), "layer_norm/gamma");
  EXPECT_EQ(layer.beta()->name(), "layer_norm/beta");
  EXPECT_THAT(layer(Tensor({2, 2}, {1.0f, 3.0f, 5.0f, 1.0f})).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), {9, 11, 11, 9}));
  EXPECT_EQ(layer(lockstep::zeros({0, 2})).shape(), Shape({0, 2}));
}

TEST(LayerNorm, TakesSeveralLastAxes) {
  const LayerNorm layer({2, 3}, {.epsilon = 0, .center = false});
  EXPECT_EQ(layer.variables().size(), 1u);
  EXPECT_EQ(layer.gamma()->shape(), Shape({2, 3}));
  // 1 ... 6: mean 3.5, variance 35 / 12.
  const float unit = std::sqrt(12.0f / 35);
  EXPECT_THAT(layer(Tensor({1, 2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f})).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), {-2.5f * unit, -1.5f * unit, -0.5f * unit, 0.5f * unit,
                                           1.5f * unit, 2.5f * unit}));
  EXPECT_THAT(
      [&] {
        layer(lockstep::zeros({1, 4, 3}));
      },
      throws<InvalidArgument>("[layer_norm]", "[2, 3]", "[1, 4, 3]"));
}

TEST(LayerNorm, HasGradientsOfGradients) {
  const LayerNorm layer(
      4, {.beta_initializer = noise(1), .gamma_initializer = noise(2), .dtype = DType::f64});
  lockstep::testing::expect_second_gradients(
      [&](const std::vector<Tensor>& x) { return square(layer(x[0])); },
      {Noise(3).tensor<double>({3, 4})});
}

TEST(RMSNorm, DividesByTheRootMeanSquare) {
  const RMSNorm layer(2, {.epsilon = 0, .scale_initializer = constant(5)});
  EXPECT_EQ(layer.scale().name(), "rms_norm/scale");
  const float root = std::sqrt(12.5f);
  EXPECT_THAT(layer(Tensor({1, 2}, {3.0f, 4.0f})).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), {15 / root, 20 / root}));
}

TEST(GroupNorm, NormalisesGroupsOfChannelsOfEachExample) {
  const GroupNorm layer(4, {.groups = 2, .epsilon = 0});
  const Tensor x({1, 2, 4}, {1.0f, 3.0f, 10.0f, 10.0f, 1.0f, 3.0f, 30.0f, 30.0f});
  EXPECT_THAT(layer(x).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), {-1, 1, -1, -1, -1, 1, 1, 1}));
}

TEST(NormLayers, KeepParametersInF32Beside16Bits) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const LayerNorm layer(8, {.dtype = dtype});
    EXPECT_EQ(layer.gamma()->dtype(), DType::f32);
    // Squares of 300 do not fit into f16.
    const Tensor x = cast(Noise(1).tensor<float>({4, 8}, 300), dtype);
    const Tensor y = layer(x);
    EXPECT_EQ(y.dtype(), dtype);
    const Tensor expected = LayerNorm(8)(cast(x, DType::f32));
    EXPECT_THAT(cast(y, DType::f32).to_vector<float>(),
                Pointwise(FloatNear(0.02f), expected.to_vector<float>()));
    EXPECT_EQ(RMSNorm(8, {.dtype = dtype})(x).dtype(), dtype);
    EXPECT_EQ(GroupNorm(8, {.groups = 2, .dtype = dtype})(x).dtype(), dtype);
  }
}

TEST(NormLayers, ObeyMixedPolicies) {
  const PolicyScope mixed(mixed_bfloat16);
  const Tensor x = Noise(4).tensor<float>({4, 8});
  const auto expect_mixed = [&](const auto& layer) {
    GradientTape tape;
    const Tensor y = layer(x, {.training = true});
    EXPECT_EQ(y.dtype(), DType::bf16) << layer.name();
    for (const Variable& variable : layer.variables())
      EXPECT_EQ(variable.dtype(), DType::f32) << variable.name();
    for (const Tensor& gradient : tape.gradient(y, layer.trainable_variables()))
      EXPECT_EQ(gradient.dtype(), DType::f32) << layer.name();
  };
  expect_mixed(LayerNorm(8));
  expect_mixed(RMSNorm(8));
  expect_mixed(GroupNorm(8, {.groups = 2}));
  expect_mixed(BatchNorm(8));
  expect_mixed(BatchNorm(8, {.synchronized = true}));
}

TEST(NormLayers, RefuseWhatCannotBe) {
  EXPECT_THAT([] { LayerNorm(0); }, throws<InvalidArgument>("[LayerNorm]", "got 0"));
  EXPECT_THAT([] { LayerNorm(Shape{}); }, throws<InvalidArgument>("[LayerNorm]", "one axis"));
  EXPECT_THAT([] { LayerNorm(2, {.epsilon = -1}); }, throws<InvalidArgument>("epsilon", "-1"));
  EXPECT_THAT([] { RMSNorm(2, {.dtype = DType::i32}); },
              throws<InvalidArgument>("[rms_norm]", "floating", "i32"));
  EXPECT_THAT([] { GroupNorm(6, {.groups = 4}); },
              throws<InvalidArgument>("[GroupNorm]", "6 channels", "got 4"));
  EXPECT_THAT(
      [] {
        RMSNorm(3)(lockstep::zeros({2, 4}));
      },
      throws<InvalidArgument>("[rms_norm]", "3 values"));
  EXPECT_THAT([] { GroupNorm(4, {.groups = 2})(lockstep::zeros({4})); },
              throws<InvalidArgument>("[group_norm]", "rank 2"));
  EXPECT_THAT(
      [] {
        LayerNorm(3)(lockstep::zeros({2, 3}, DType::f64));
      },
      throws<InvalidArgument>("[layer_norm]", "f32", "f64"));
}

}  // namespace
}  // namespace lockstep::nn
