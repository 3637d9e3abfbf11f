// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/attention.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/conv.h>
#include <lockstep/ops/einsum.h>
#include <lockstep/ops/norm.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/shape_ops.h>

#include "support/traced.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

TEST(NormXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(1);
  const Tensors x = {noise.tensor<float>({3, 2, 6}), noise.tensor<float>({6}),
                     noise.tensor<float>({6}), noise.tensor<float>({6}),
                     noise.tensor<float>({6}) + 1.5};
  const auto f = [](const Tensors& t) {
    const BatchNormResult batch = batch_norm(t[0], t[1], t[2]);
    return Tensors{layer_norm(t[0], t[1], t[2]),
                   layer_norm(t[0], Tensor(), Tensor(), {.axis = 1}),
                   rms_norm(t[0], t[1]),
                   group_norm(t[0], t[1], t[2], {.groups = 3}),
                   batch.y,
                   batch.mean,
                   batch.variance,
                   batch_norm_inference(t[0], t[3], t[4], t[1], t[2])};
  };
  expect_same_traced(x, f, {.tolerance = 1e-4});
  Tensors wide, halves;
  for (const Tensor& each : x) {
    wide.push_back(cast(each, DType::f64));
    halves.push_back(cast(each, DType::bf16));
  }
  expect_same_traced(wide, f, {.tolerance = 1e-11, .gradients = false});
  expect_same_traced(halves, f, {.tolerance = 8e-3, .gradients = false});
}

TEST(AttentionXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(2);
  const Tensors x = {noise.tensor<float>({2, 3, 4}), noise.tensor<float>({2, 5, 4}),
                     noise.tensor<float>({2, 5, 2}), noise.tensor<float>({3, 5}),
                     less(noise.tensor<float>({2, 3, 1}), 0.2)};
  const auto f = [](const Tensors& t) {
    return Tensors{
        scaled_dot_product_attention(t[0], t[1], t[2]),
        scaled_dot_product_attention(t[0], t[1], t[2], t[3]),
        scaled_dot_product_attention(t[0], t[1], t[2], t[4]),
        scaled_dot_product_attention(t[0], t[1], t[2], t[4], {.causal = true}),
        scaled_dot_product_attention(t[0], t[1], t[2], {}, {.causal = true, .scale = 2})};
  };
  expect_same_traced(x, f, {.tolerance = 5e-5, .gradients = false});
  const auto masked = [](const Tensors& t) {
    return Tensors{scaled_dot_product_attention(t[0], t[1], t[2], t[3]),
                   scaled_dot_product_attention(t[0], t[1], t[2], t[4], {.causal = true})};
  };
  expect_same_traced(x, masked, {.tolerance = 5e-5});
  Tensors halves;
  for (const Tensor& each : x)
    halves.push_back(is_floating(each.dtype()) ? cast(each, DType::bf16) : each);
  expect_same_traced(halves, f, {.tolerance = 8e-3, .gradients = false});
}

TEST(ConvAxesXla, EqualCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(3);
  const Tensors x = {noise.tensor<float>({2, 7, 4}),
                     noise.tensor<float>({3, 2, 6}),
                     noise.tensor<float>({1, 4, 5, 4, 4}),
                     noise.tensor<float>({2, 3, 2, 2, 6}),
                     noise.tensor<float>({1, 3, 4, 6}),
                     noise.tensor<float>({3, 2, 4, 6}),
                     noise.tensor<float>({6}),
                     noise.tensor<float>({2, 2, 6, 2})};
  const auto f = [](const Tensors& t) {
    return Tensors{
        conv1d(t[0], t[1], t[6],
               {.strides = 2,
                .padding = {3, 1},
                .dilations = 2,
                .groups = 2,
                .activation = Activation::relu}),
        conv3d(
            t[2], t[3], t[6],
            {.strides = {1, 2, 1}, .padding = Padding::same, .dilations = {2, 1, 1}, .groups = 2}),
        conv2d_transpose(t[4], t[5], Tensor(), {.strides = {2, 3}, .padding = Padding::same}),
        conv1d_transpose(t[0], reshape(t[3], {3, 12, 4}), Tensor(), {.strides = 2}),
        depthwise_conv2d(t[4], t[7], Tensor(), {.padding = Padding::same})};
  };
  expect_same_traced(x, f, {.tolerance = 1e-4});
  Tensors halves;
  for (const Tensor& each : x) halves.push_back(cast(each, DType::bf16));
  expect_same_traced(halves, f, {.tolerance = 8e-3, .gradients = false});
}

TEST(PoolAxesXla, EqualCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(4);
  const Tensors x = {noise.tensor<float>({2, 7, 3}), noise.tensor<float>({1, 4, 5, 4, 3})};
  const auto f = [](const Tensors& t) {
    const Pool1dOptions one{.window = 3, .strides = 2, .padding = Padding::same};
    const Pool3dOptions three{
        .window = {2, 3, 2}, .strides = {2, 1, 2}, .padding = {1, 0, 2, 1, 0, 0}};
    return Tensors{max_pool1d(t[0], one),   avg_pool1d(t[0], one),
                   max_pool3d(t[1], three), avg_pool3d(t[1], three),
                   global_max_pool(t[1]),   global_avg_pool(t[1], {.keep_dims = true})};
  };
  expect_same_traced(x, f);
  Tensors ties, halves;
  for (const Tensor& each : x) {
    ties.push_back(lockstep::round(each * 2));
    halves.push_back(cast(each, DType::bf16));
  }
  expect_same_traced(ties, f);
  expect_same_traced(halves, f, {.tolerance = 8e-3, .gradients = false});
}

TEST(EinsumXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(5);
  const Tensors x = {noise.tensor<float>({2, 3, 3}), noise.tensor<float>({2, 3, 4}),
                     noise.tensor<float>({1, 3, 4})};
  expect_same_traced(x, [](const Tensors& t) {
    return Tensors{einsum("bij,bjk->bik", {t[0], t[1]}), einsum("bij,ckj->bcik", {t[1], t[2]}),
                   einsum("...ij,...ij->...i", {t[1], t[2]}), einsum("bii->bi", {t[0]}),
                   einsum("bij,bjk,bik->b", {t[0], t[1], t[1]})};
  });
}

}  // namespace
}  // namespace lockstep
