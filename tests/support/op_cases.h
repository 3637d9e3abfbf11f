// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <functional>
#include <span>
#include <vector>

#include "support/values.h"

namespace lockstep::testing {

// Ops with inputs that all of them take, to compare what devices make of them.

// An op of floating tensors x [4, 6], y [4, 6], row [6], of labels [4], and of a condition [4, 6].
struct OpInputs {
  Tensor x, y, row, labels, condition;
  static OpInputs on_host(DType dtype) {
    Noise noise(7);
    const Tensor x = noise.tensor<float>({4, 6});
    return {cast(x, dtype), cast(noise.tensor<float>({4, 6}) + 2, dtype),
            cast(noise.tensor<float>({6}), dtype),
            Tensor({4}, {std::int64_t{3}, std::int64_t{0}, std::int64_t{5}, std::int64_t{3}}),
            greater(x, 0)};
  }
  OpInputs on(Device device) const {
    return {copy_to(x, device), copy_to(y, device), copy_to(row, device), copy_to(labels, device),
            copy_to(condition, device)};
  }
};

struct OpCase {
  const char* name;
  std::function<Tensor(const OpInputs&)> op;

  // The op's value, and where it has one the gradient of its square for x.
  std::vector<Tensor> value_and_gradient(const OpInputs& in) const {
    GradientTape tape;
    tape.watch(in.x);
    const Tensor value = op(in);
    if (!is_floating(value.dtype())) return {value};
    const Tensor loss = sum(value * value);
    const Tensor gradient = tape.gradient(loss, std::span(&in.x, 1))[0];
    return gradient.defined() ? std::vector{value, gradient} : std::vector{value};
  }
};

inline Tensor images_of(const OpInputs& in) { return reshape(in.x, {1, 4, 3, 2}); }

inline std::vector<OpCase> op_cases() {
#define LOCKSTEP_CASE(expression)                                        \
  OpCase {                                                               \
    #expression, [](const OpInputs& in) -> Tensor { return expression; } \
  }
  return {
      LOCKSTEP_CASE(exp(in.x)),
      LOCKSTEP_CASE(relu(in.x)),
      LOCKSTEP_CASE(gelu(in.x)),
      LOCKSTEP_CASE(gelu_tanh(in.x)),
      LOCKSTEP_CASE(silu(in.x)),
      LOCKSTEP_CASE(softplus(in.x)),
      LOCKSTEP_CASE(elu(in.x)),
      LOCKSTEP_CASE(leaky_relu(in.x, 0.1)),
      LOCKSTEP_CASE(tan(in.x)),
      LOCKSTEP_CASE(atan(in.x)),
      LOCKSTEP_CASE(sqrt(in.y)),
      LOCKSTEP_CASE(in.x + in.y),
      LOCKSTEP_CASE(in.x * in.row),
      LOCKSTEP_CASE(3 - in.x / 2),
      LOCKSTEP_CASE(pow(in.y, 1.5)),
      LOCKSTEP_CASE(maximum(in.x, in.row)),
      LOCKSTEP_CASE(mod(in.y, in.row)),
      LOCKSTEP_CASE(squared_difference(in.x, in.row)),
      LOCKSTEP_CASE(clamp(in.x, -0.5, 0.5)),
      LOCKSTEP_CASE(cast(less(in.x, in.row), DType::f32)),
      LOCKSTEP_CASE(cast(logical_and(in.condition, less(in.x, 0.5)), DType::f32)),
      LOCKSTEP_CASE(cast(logical_xor(in.condition, less(in.x, 0.5)), DType::f32)),
      LOCKSTEP_CASE(cast(is_finite(in.x), DType::f32)),
      LOCKSTEP_CASE(cast(is_nan(in.x), DType::f32)),
      LOCKSTEP_CASE(select(in.condition, in.x, in.row)),
      LOCKSTEP_CASE(cast(in.x, DType::f64)),
      LOCKSTEP_CASE(cast(in.x * 10, DType::i32)),
      LOCKSTEP_CASE(sum(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(mean(in.x)),
      LOCKSTEP_CASE(prod(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(variance(in.x, {.axes = {1}})),
      LOCKSTEP_CASE(stddev(in.x)),
      LOCKSTEP_CASE(logsumexp(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(cumsum(in.x, {.axis = 1})),
      LOCKSTEP_CASE(cumsum(in.x, {.exclusive = true, .reverse = true})),
      LOCKSTEP_CASE(argmin(in.x, 0)),
      LOCKSTEP_CASE(max(in.x, {.axes = {1}, .keep_dims = true})),
      LOCKSTEP_CASE(cast(any(in.condition, {.axes = {0}}), DType::f32)),
      LOCKSTEP_CASE(argmax(in.x, 1)),
      LOCKSTEP_CASE(matmul(in.x, in.y, {.transpose_b = true})),
      LOCKSTEP_CASE(
          dense(in.x, matmul(in.x, in.y, {.transpose_a = true}), in.row, Activation::relu)),
      LOCKSTEP_CASE(scaled_dot_product_attention(in.x, in.y, in.y, {}, {.causal = true})),
      LOCKSTEP_CASE(scaled_dot_product_attention(in.x, in.y, in.y,
                                                 matmul(in.x, in.y, {.transpose_b = true}))),
      LOCKSTEP_CASE(layer_norm(in.x, in.row, in.row)),
      LOCKSTEP_CASE(rms_norm(in.x, in.row)),
      LOCKSTEP_CASE(group_norm(in.x, in.row, in.row, {.groups = 2})),
      LOCKSTEP_CASE(batch_norm(in.x, in.row, in.row).y),
      LOCKSTEP_CASE(batch_norm_inference(in.x, in.row, square(in.row), in.row, in.row)),
      LOCKSTEP_CASE(einsum("ij,kj->ik", {in.x, in.y})),
      LOCKSTEP_CASE(softmax(in.x)),
      LOCKSTEP_CASE(log_softmax(in.x, 0)),
      LOCKSTEP_CASE(sparse_softmax_cross_entropy(in.labels, in.x)),
      LOCKSTEP_CASE(softmax_cross_entropy(softmax(in.y), in.x)),
      LOCKSTEP_CASE(sigmoid_cross_entropy(sigmoid(in.y), in.x)),
      LOCKSTEP_CASE(gather(in.row, in.labels)),
      LOCKSTEP_CASE(one_hot(in.labels, 6)),
      LOCKSTEP_CASE(concat({in.x, in.y}, 1)),
      LOCKSTEP_CASE(slice(in.x, {1, 2}, {2, 3})),
      LOCKSTEP_CASE(pad(in.x, {1, 0}, {0, 2})),
      LOCKSTEP_CASE(split(in.x, 2, 1)[1]),
      LOCKSTEP_CASE(pad(in.x, {1, 0}, {0, 2}, {.value = 2})),
      LOCKSTEP_CASE(pad(in.x, {1, 3}, {0, 2}, {.mode = PadMode::reflect})),
      LOCKSTEP_CASE(pad(in.x, {1, 6}, {0, 2}, {.mode = PadMode::symmetric})),
      LOCKSTEP_CASE(strided_slice(in.x, {{.stride = -2}, {.begin = 1, .stride = 3}})),
      LOCKSTEP_CASE(reverse(in.x, {0, 1})),
      LOCKSTEP_CASE(roll(in.x, {1, -2}, {0, 1})),
      LOCKSTEP_CASE(tile(in.x, {2, 3})),
      LOCKSTEP_CASE(unstack(in.x, 1)[1]),
      LOCKSTEP_CASE(gather(in.x, in.labels, 1)),
      LOCKSTEP_CASE(gather_nd(in.row, reshape(in.labels, {2, 2, 1}))),
      LOCKSTEP_CASE(take_along_axis(in.x, reshape(in.labels, {4, 1}))),
      LOCKSTEP_CASE(scatter_add(in.labels, in.x, 7)),
      LOCKSTEP_CASE(scatter_nd(reshape(in.labels, {4, 1}), in.x, {7, 6})),
      LOCKSTEP_CASE(
          tensor_scatter_add(in.row, reshape(in.labels, {4, 1}), sum(in.x, {.axes = {1}}))),
      LOCKSTEP_CASE(unsorted_segment_sum(in.x, in.labels - 1, 6)),
      LOCKSTEP_CASE(segment_sum(in.x, one_hot(Tensor(3), 4, DType::i64))),
      LOCKSTEP_CASE(where(in.condition)),
      LOCKSTEP_CASE(transpose(in.x)),
      LOCKSTEP_CASE(broadcast_to(in.row, {4, 6})),
      LOCKSTEP_CASE(
          conv2d(images_of(in), reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 2, 2}), Tensor())),
      LOCKSTEP_CASE(conv1d(reshape(in.x, {2, 6, 2}),
                           reshape(slice(in.y, {0, 0}, {2, 6}), {3, 2, 2}), Tensor(),
                           {.padding = Padding::same})),
      LOCKSTEP_CASE(conv3d(reshape(in.x, {1, 2, 3, 2, 2}),
                           reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 1, 2, 2}), Tensor())),
      LOCKSTEP_CASE(conv2d_transpose(images_of(in),
                                     reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 2, 2}), Tensor(),
                                     {.strides = 2})),
      LOCKSTEP_CASE(depthwise_conv2d(images_of(in),
                                     reshape(slice(in.y, {0, 0}, {4, 2}), {2, 2, 2, 1}), Tensor())),
      LOCKSTEP_CASE(max_pool2d(images_of(in), {.window = 2, .strides = 1})),
      LOCKSTEP_CASE(avg_pool2d(images_of(in), {.window = 2, .strides = 1})),
      LOCKSTEP_CASE(max_pool1d(reshape(in.x, {2, 6, 2}))),
      LOCKSTEP_CASE(avg_pool1d(reshape(in.x, {2, 6, 2}))),
      LOCKSTEP_CASE(max_pool3d(reshape(in.x, {1, 2, 3, 2, 2}))),
      LOCKSTEP_CASE(avg_pool3d(reshape(in.x, {1, 2, 3, 2, 2}))),
      LOCKSTEP_CASE(global_avg_pool(images_of(in))),
      LOCKSTEP_CASE(global_norm(std::vector{in.x, in.row})),
      LOCKSTEP_CASE(cast(is_finite_all(std::vector{in.x, in.row}), DType::f32)),
  };
#undef LOCKSTEP_CASE
}

}  // namespace lockstep::testing
