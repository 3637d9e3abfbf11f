// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "support/values.h"

namespace lockstep::testing {

// Ops with inputs that all of them take, to compare what devices make of them.

// An op of floating tensors x, y [rows, columns], row [columns], weights [columns, columns], images
// [rows, 5, 4, 2], kernel [2, 2, 2, 2], of labels [rows], numbers of columns, of ordinals [rows], 0, 1,
// ..., and of a condition [rows, columns]. Every dtype has the same numbers: they fit into 8 bits of
// significand. y lies between 1 and 3, the other floats between -1 and 1.
struct OpInputs {
  Tensor x, y, row, weights, images, kernel, labels, ordinals, condition;

  static OpInputs on_host(DType dtype, std::int64_t rows = 4, std::int64_t columns = 6) {
    Noise noise(7);
    const auto drawn = [&](const Shape& shape, double offset = 0) {
      return cast(cast(noise.tensor<float>(shape) + offset, DType::bf16), dtype);
    };
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < rows; ++i) labels.push_back((5 * i + 3) % columns);
    OpInputs in;
    in.x = drawn({rows, columns});
    in.y = drawn({rows, columns}, 2);
    in.row = drawn({columns});
    in.weights = drawn({columns, columns});
    in.images = drawn({rows, 5, 4, 2});
    in.kernel = drawn({2, 2, 2, 2});
    in.labels = Tensor({rows}, std::span<const std::int64_t>(labels));
    in.ordinals = range(0, rows, 1, DType::i64);
    in.condition = greater(in.x, 0);
    return in;
  }
  OpInputs on(Device device) const {
    return of([device](const Tensor& each) { return copy_to(each, device); });
  }
  // f of each of them.
  template <class F>
  OpInputs of(F&& f) const {
    return {f(x),      f(y),      f(row),      f(weights),  f(images),
            f(kernel), f(labels), f(ordinals), f(condition)};
  }

  std::int64_t rows() const { return x.shape()[0]; }
  std::int64_t columns() const { return x.shape()[1]; }
  // Each label as coordinates of one axis.
  Tensor places() const { return reshape(labels, {rows(), 1}); }
  Tensor lines() const { return reshape(images, {rows(), 20, 2}); }
  Tensor volumes() const { return reshape(images, {rows(), 5, 2, 2, 2}); }
  // At most `count`, and one less than there are rows, or columns.
  std::int64_t some_rows(std::int64_t count) const {
    return std::clamp<std::int64_t>(rows() - 1, 0, count);
  }
  std::int64_t some_columns(std::int64_t count) const {
    return std::clamp<std::int64_t>(columns() - 1, 0, count);
  }
};

struct OpCase {
  const char* name;
  std::function<Tensor(const OpInputs&)> op;
  bool takes_no_rows = true;
  bool traces = true;  // its shape does not depend on values

  // The op's value, and those gradients of a weighted sum of its elements for the floating inputs that
  // there are.
  std::vector<Tensor> value_and_gradients(const OpInputs& in) const {
    GradientTape tape;
    const std::vector<Tensor> sources = {in.x, in.y, in.row, in.weights, in.images, in.kernel};
    for (const Tensor& source : sources) tape.watch(source);
    std::vector<Tensor> results = {op(in)};
    const Tensor value = results[0];
    if (!is_floating(value.dtype())) return results;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < value.num_elements(); ++i)
      weights.push_back(0.25 + static_cast<double>(i * 7 % 11) / 8);
    const Tensor weight(value.shape(), std::span<const double>(weights));
    for (const Tensor& gradient : tape.gradient(sum(value * cast(weight, value.dtype())), sources))
      if (gradient.defined()) results.push_back(gradient);
    return results;
  }
};

inline std::vector<OpCase> op_cases() {
#define LOCKSTEP_CASE(expression, ...)                                                  \
  OpCase {                                                                              \
    .name = #expression, .op = [](const OpInputs& in) -> Tensor { return expression; }, \
    __VA_ARGS__                                                                         \
  }
  return {
      LOCKSTEP_CASE(-in.x),
      LOCKSTEP_CASE(abs(in.x)),
      LOCKSTEP_CASE(sign(in.x)),
      LOCKSTEP_CASE(relu(in.x)),
      LOCKSTEP_CASE(square(in.x)),
      LOCKSTEP_CASE(sqrt(in.y)),
      LOCKSTEP_CASE(rsqrt(in.y)),
      LOCKSTEP_CASE(reciprocal(in.y)),
      LOCKSTEP_CASE(exp(in.x)),
      LOCKSTEP_CASE(expm1(in.x)),
      LOCKSTEP_CASE(log(in.y)),
      LOCKSTEP_CASE(log1p(in.y)),
      LOCKSTEP_CASE(sin(in.x)),
      LOCKSTEP_CASE(cos(in.x)),
      LOCKSTEP_CASE(tan(in.x)),
      LOCKSTEP_CASE(atan(in.x)),
      LOCKSTEP_CASE(tanh(in.x)),
      LOCKSTEP_CASE(erf(in.x)),
      LOCKSTEP_CASE(sigmoid(in.x)),
      LOCKSTEP_CASE(gelu(in.x)),
      LOCKSTEP_CASE(gelu_tanh(in.x)),
      LOCKSTEP_CASE(silu(in.x)),
      LOCKSTEP_CASE(softplus(in.x)),
      LOCKSTEP_CASE(elu(in.x)),
      LOCKSTEP_CASE(floor(in.x * 4)),
      LOCKSTEP_CASE(ceil(in.x * 4)),
      LOCKSTEP_CASE(round(in.x * 4)),
      LOCKSTEP_CASE(activate(in.x, Activation::sigmoid)),
      LOCKSTEP_CASE(in.x + in.y),
      LOCKSTEP_CASE(in.x - in.row),
      LOCKSTEP_CASE(in.x * in.row),
      LOCKSTEP_CASE(3 - in.x / 2),
      LOCKSTEP_CASE(in.x / in.y),
      LOCKSTEP_CASE(pow(in.y, 1.5)),
      LOCKSTEP_CASE(pow(in.y, in.x)),
      LOCKSTEP_CASE(maximum(in.x, in.row)),
      LOCKSTEP_CASE(minimum(in.x, in.row)),
      LOCKSTEP_CASE(mod(in.y, in.row)),
      LOCKSTEP_CASE(squared_difference(in.x, in.row)),
      LOCKSTEP_CASE(leaky_relu(in.x, 0.1)),
      LOCKSTEP_CASE(atan2(in.x, in.y)),
      LOCKSTEP_CASE(clamp(in.x, -0.5, 0.5)),
      LOCKSTEP_CASE(equal(in.x, in.row)),
      LOCKSTEP_CASE(not_equal(in.x, in.row)),
      LOCKSTEP_CASE(less(in.x, in.row)),
      LOCKSTEP_CASE(less_equal(in.x, in.row)),
      LOCKSTEP_CASE(greater(in.x, in.row)),
      LOCKSTEP_CASE(greater_equal(in.x, 0.5)),
      LOCKSTEP_CASE(logical_and(in.condition, less(in.x, 0.5))),
      LOCKSTEP_CASE(logical_or(in.condition, less(in.x, 0.5))),
      LOCKSTEP_CASE(logical_xor(in.condition, less(in.x, 0.5))),
      LOCKSTEP_CASE(logical_not(in.condition)),
      LOCKSTEP_CASE(is_finite(in.x)),
      LOCKSTEP_CASE(is_nan(in.x)),
      LOCKSTEP_CASE(is_inf(in.x / in.row)),
      LOCKSTEP_CASE(select(in.condition, in.x, in.row)),
      LOCKSTEP_CASE(cast(in.x, DType::f64)),
      LOCKSTEP_CASE(cast(in.x * 8, DType::i32)),
      LOCKSTEP_CASE(in.x + stop_gradient(in.x)),
      LOCKSTEP_CASE(sum(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(sum(in.x)),
      LOCKSTEP_CASE(mean(in.x)),
      LOCKSTEP_CASE(mean(in.x, {.axes = {1}, .keep_dims = true})),
      LOCKSTEP_CASE(prod(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(variance(in.x, {.axes = {1}})),
      LOCKSTEP_CASE(stddev(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(logsumexp(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(max(in.x, {.axes = {1}, .keep_dims = true})),
      LOCKSTEP_CASE(min(in.x, {.axes = {1}})),
      LOCKSTEP_CASE(any(in.condition, {.axes = {0}})),
      LOCKSTEP_CASE(all(in.condition, {.axes = {1}})),
      LOCKSTEP_CASE(argmax(in.x, 1)),
      LOCKSTEP_CASE(argmin(in.x, 0), .takes_no_rows = false),
      LOCKSTEP_CASE(cumsum(in.x, {.axis = 1})),
      LOCKSTEP_CASE(cumsum(in.x, {.exclusive = true, .reverse = true})),
      LOCKSTEP_CASE(sum_to_shape(in.x, {1, in.columns()})),
      LOCKSTEP_CASE(matmul(in.x, in.y, {.transpose_b = true})),
      LOCKSTEP_CASE(dense(in.x, in.weights, in.row, Activation::relu)),
      LOCKSTEP_CASE(dense(in.x, in.weights, Tensor(), Activation::tanh)),
      LOCKSTEP_CASE(einsum("ij,kj->ik", {in.x, in.y})),
      LOCKSTEP_CASE(scaled_dot_product_attention(in.x, in.y - 2, in.y - 2, {}, {.causal = true})),
      LOCKSTEP_CASE(scaled_dot_product_attention(transpose(in.x), transpose(in.y - 2),
                                                 transpose(in.y - 2), in.weights)),
      LOCKSTEP_CASE(scaled_dot_product_attention(in.x, in.x, in.y - 2, less(in.ordinals, 3))),
      LOCKSTEP_CASE(layer_norm(in.x, in.row, in.row)),
      LOCKSTEP_CASE(rms_norm(in.x, in.row)),
      LOCKSTEP_CASE(group_norm(in.x, in.row, in.row, {.groups = in.columns() % 2 == 0 ? 2 : 1})),
      LOCKSTEP_CASE(batch_norm(in.x, in.row, in.row).y),
      LOCKSTEP_CASE(batch_norm(in.x, Tensor(), Tensor()).mean),
      LOCKSTEP_CASE(batch_norm(in.x, Tensor(), Tensor()).variance),
      LOCKSTEP_CASE(batch_norm_inference(in.x, in.row, square(in.row), in.row, in.row)),
      LOCKSTEP_CASE(softmax(in.x)),
      LOCKSTEP_CASE(softmax(in.x, 0)),
      LOCKSTEP_CASE(log_softmax(in.x, 0)),
      LOCKSTEP_CASE(sparse_softmax_cross_entropy(in.labels, in.x)),
      LOCKSTEP_CASE(softmax_cross_entropy(in.y - 2, in.x)),
      LOCKSTEP_CASE(sigmoid_cross_entropy(in.y, in.x)),
      LOCKSTEP_CASE(gather(in.row, in.labels)),
      LOCKSTEP_CASE(gather(in.x, in.labels, 1)),
      LOCKSTEP_CASE(gather_nd(in.row, in.places())),
      LOCKSTEP_CASE(take_along_axis(in.x, in.places())),
      LOCKSTEP_CASE(embedding_lookup(reshape(in.row, {in.columns(), 1}), in.labels)),
      LOCKSTEP_CASE(one_hot(in.labels, in.columns())),
      LOCKSTEP_CASE(where(in.condition), .traces = false),
      LOCKSTEP_CASE(scatter_add(in.labels, in.x, in.columns() + 1)),
      LOCKSTEP_CASE(scatter_nd(in.places(), in.x, {in.columns(), in.columns()})),
      LOCKSTEP_CASE(tensor_scatter_add(in.row, in.places(), sum(in.x, {.axes = {1}}))),
      LOCKSTEP_CASE(to_dense({in.x, in.labels, {in.columns(), in.columns()}})),
      LOCKSTEP_CASE(unsorted_segment_sum(in.x, in.labels - 1, in.columns())),
      LOCKSTEP_CASE(segment_sum(in.x, in.ordinals), .traces = false),
      LOCKSTEP_CASE(sort(in.x)),
      LOCKSTEP_CASE(sort(in.x, {.axis = 0, .direction = SortDirection::descending})),
      LOCKSTEP_CASE(argsort(in.x)),
      LOCKSTEP_CASE(top_k(in.x, in.some_columns(3)).values),
      LOCKSTEP_CASE(top_k(in.x, 1).indices),
      LOCKSTEP_CASE(reshape(in.x, {in.columns(), in.rows()})),
      LOCKSTEP_CASE(squeeze(expand_dims(in.x, 1), {1})),
      LOCKSTEP_CASE(flatten_from(in.images, 1)),
      LOCKSTEP_CASE(transpose(in.x)),
      LOCKSTEP_CASE(broadcast_to(in.row, {in.rows(), in.columns()})),
      LOCKSTEP_CASE(concat({in.x, in.y}, 1)),
      LOCKSTEP_CASE(stack({in.x, in.y}, 1)),
      LOCKSTEP_CASE(unstack(in.x, 1)[0]),
      LOCKSTEP_CASE(split(in.x, {in.some_columns(2), in.columns() - in.some_columns(2)}, 1)[1]),
      LOCKSTEP_CASE(slice(in.x, {in.some_rows(1), in.some_columns(2)}, {-1, -1})),
      LOCKSTEP_CASE(strided_slice(in.x, {{.stride = -2}, {.begin = 1, .stride = 3}})),
      LOCKSTEP_CASE(strided_slice_gradient(in.x, {2 * in.rows(), in.columns()}, {{.stride = -2}})),
      LOCKSTEP_CASE(reverse(in.x, {0, 1})),
      LOCKSTEP_CASE(roll(in.x, {1, -2}, {0, 1})),
      LOCKSTEP_CASE(tile(in.x, {2, 3})),
      LOCKSTEP_CASE(pad(in.x, {1, 0}, {0, 2}, {.value = 2})),
      LOCKSTEP_CASE(pad(in.x, {in.some_rows(1), in.some_columns(3)}, {0, in.some_columns(2)},
                        {.mode = PadMode::reflect})),
      LOCKSTEP_CASE(pad(in.x, {in.some_rows(1), in.columns()}, {0, in.some_columns(2)},
                        {.mode = PadMode::symmetric})),
      LOCKSTEP_CASE(conv1d(in.lines(), slice(reshape(in.kernel, {4, 2, 2}), {0, 0, 0}, {3, 2, 2}),
                           Tensor(), {.padding = Padding::same})),
      LOCKSTEP_CASE(conv2d(in.images, in.kernel,
                           reshape(slice(in.kernel, {0, 0, 0, 0}, {1, 1, 1, 2}), {2}),
                           {.strides = 2, .activation = Activation::sigmoid})),
      LOCKSTEP_CASE(
          conv2d(in.images, in.kernel, Tensor(), {.padding = Padding::same, .dilations = 2})),
      LOCKSTEP_CASE(conv3d(in.volumes(), reshape(in.kernel, {2, 2, 1, 2, 2}), Tensor())),
      LOCKSTEP_CASE(
          depthwise_conv2d(in.images, slice(in.kernel, {0, 0, 0, 0}, {2, 2, 2, 1}), Tensor())),
      LOCKSTEP_CASE(
          conv1d_transpose(in.lines(), reshape(in.kernel, {4, 2, 2}), Tensor(), {.strides = 3})),
      LOCKSTEP_CASE(conv2d_transpose(in.images, in.kernel, Tensor(),
                                     {.strides = 2, .padding = Padding::same})),
      LOCKSTEP_CASE(conv3d_transpose(in.volumes(), reshape(in.kernel, {2, 2, 1, 2, 2}), Tensor())),
      LOCKSTEP_CASE(
          conv1d_input_gradient(in.lines(), reshape(in.kernel, {4, 2, 2}), {in.rows(), 23, 2})),
      LOCKSTEP_CASE(conv2d_input_gradient(in.images, in.kernel, {in.rows(), 6, 5, 2})),
      LOCKSTEP_CASE(conv3d_input_gradient(in.volumes(), reshape(in.kernel, {2, 2, 1, 2, 2}),
                                          {in.rows(), 6, 3, 2, 2})),
      LOCKSTEP_CASE(conv1d_weight_gradient(in.lines(), in.lines(), {1, 2, 2})),
      LOCKSTEP_CASE(conv2d_weight_gradient(slice(in.images, {0, 1, 0, 0}, {-1, -1, -1, -1}),
                                           in.images, {2, 1, 2, 2})),
      LOCKSTEP_CASE(conv3d_weight_gradient(in.volumes(), in.volumes(), {1, 1, 1, 2, 2})),
      LOCKSTEP_CASE(max_pool1d(in.lines(), {.window = 3, .strides = 2})),
      LOCKSTEP_CASE(avg_pool1d(in.lines(), {.window = 3, .strides = 2, .padding = Padding::same})),
      LOCKSTEP_CASE(max_pool2d(in.images, {.window = 2, .strides = 1, .padding = Padding::same})),
      LOCKSTEP_CASE(avg_pool2d(in.images, {.window = 2, .strides = 1})),
      LOCKSTEP_CASE(max_pool3d(in.volumes())),
      LOCKSTEP_CASE(avg_pool3d(in.volumes(), {.window = {2, 2, 1}, .strides = 1})),
      LOCKSTEP_CASE(global_max_pool(in.images)),
      LOCKSTEP_CASE(global_avg_pool(in.images, {.keep_dims = true})),
      LOCKSTEP_CASE(global_norm(std::vector{in.x, in.row})),
      LOCKSTEP_CASE(is_finite_all(std::vector{in.x, in.row})),
  };
#undef LOCKSTEP_CASE
}

}  // namespace lockstep::testing
