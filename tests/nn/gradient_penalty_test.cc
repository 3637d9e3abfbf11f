// SPDX-License-Identifier: Apache-2.0
// Gradients of gradients through layers, as critics of generative networks are trained
// (arXiv:1704.00028).
#include <gtest/gtest.h>
#include <lockstep/nn.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

#include "nn/central_difference.h"

namespace lockstep::nn {
namespace {

Initializer of(double phase) {
  return [phase](const Shape& shape, DType) { return scattered(shape, phase); };
}

// (|gradient of the critic's score of an example| - 1)^2, summed over examples, and its gradient with
// respect to every weight, but for those on which no gradient of the score depends.
void expect_penalty_gradients(const Sequential& critic, const Shape& shape,
                              const std::vector<Variable>& weights) {
  const Tensor x = scattered(shape, 9);
  std::vector<int> axes;
  for (int axis = 1; axis < shape.rank(); ++axis) axes.push_back(axis);
  expect_central_differences(weights, [&] {
    GradientTape inner;
    inner.watch(x);
    const Tensor score = critic(x, {.training = true});
    const Tensor slope = inner.gradient(score, {x})[0];
    return sum(square(sqrt(sum(square(slope), {.axes = axes})) - 1));
  });
}

TEST(GradientPenalty, ThroughConvolutionsNormsAndDenseLayers) {
  const Conv2D conv(2, 3,
                    {.kernel_size = 2,
                     .strides = 2,
                     .kernel_initializer = of(1),
                     .bias_initializer = of(2),
                     .dtype = DType::f64});
  const LayerNorm norm(
      3, {.beta_initializer = of(3), .gamma_initializer = of(4), .dtype = DType::f64});
  const Dense dense(12, 1, {.kernel_initializer = of(5), .dtype = DType::f64});
  const Sequential critic(conv, norm, tanh, Flatten(), dense);
  expect_penalty_gradients(
      critic, {2, 4, 4, 2},
      {conv.kernel(), *conv.bias(), *norm.gamma(), *norm.beta(), dense.kernel()});
}

TEST(GradientPenalty, ThroughTransposedAndDepthwiseConvolutionsAndPools) {
  const Conv2DTranspose up(
      1, 2, {.kernel_size = 2, .strides = 2, .kernel_initializer = of(1), .dtype = DType::f64});
  const DepthwiseConv2D depthwise(
      2, {.kernel_size = 2, .depthwise_initializer = of(2), .dtype = DType::f64});
  const GroupNorm norm(2, {.groups = 1, .gamma_initializer = of(3), .dtype = DType::f64});
  const Sequential critic(up, silu, depthwise, norm, tanh, AveragePool2D({.strides = 1}),
                          GlobalAveragePool());
  expect_penalty_gradients(critic, {2, 2, 3, 1}, {up.kernel(), depthwise.kernel(), *norm.gamma()});
}

TEST(GradientPenalty, ThroughSequences) {
  const Conv1D conv(2, 2, {.kernel_size = 2, .kernel_initializer = of(1), .dtype = DType::f64});
  const RMSNorm norm(2, {.scale_initializer = of(2), .dtype = DType::f64});
  const Conv1DTranspose up(2, 1,
                           {.kernel_size = 2, .kernel_initializer = of(3), .dtype = DType::f64});
  const Sequential critic(conv, sigmoid, norm, MaxPool1D(), up, Flatten(), softplus);
  expect_penalty_gradients(critic, {2, 5, 2}, {conv.kernel(), norm.scale(), up.kernel()});
}

TEST(GradientPenalty, ThroughBatchNorm) {
  for (const bool synchronized : {false, true}) {
    const Dense first(2, 3, {.kernel_initializer = of(1), .dtype = DType::f64});
    const BatchNorm norm(
        3, {.synchronized = synchronized, .gamma_initializer = of(2), .dtype = DType::f64});
    const Dense last(3, 1, {.kernel_initializer = of(3), .dtype = DType::f64});
    expect_penalty_gradients(Sequential(first, norm, tanh, last), {4, 2},
                             {first.kernel(), *norm.gamma(), last.kernel()});
  }
}

}  // namespace
}  // namespace lockstep::nn
