// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops.h>

#include <cmath>

#include "conformance/chains/shape_steps.h"
#include "conformance/chains/value_steps.h"
#include "conformance/chains/window_steps.h"

namespace lockstep::testing {
namespace {

// ---- what the ops are given

Tensor or_none(const Tensors& x, std::size_t i) { return i < x.size() ? x[i] : Tensor(); }

ReduceOptions reduce_options(const Attributes& a) {
  return {.axes = a.axes(), .keep_dims = a.one("keep_dims") != 0};
}

SortOptions sort_options(const Attributes& a) {
  return {.axis = a.axis(),
          .direction = a.one("descending") ? SortDirection::descending : SortDirection::ascending};
}

Activation activation_of(const Attributes& a) {
  return static_cast<Activation>(a.one("activation"));
}

Tensor integer_tensor(const Attributes& a) {
  const Tensor wide(a.shape(), std::span<const std::int64_t>(a["values"]));
  return a.one("bits") == 32 ? cast(wide, DType::i32) : wide;
}

Tensor batch_norm_part(const BatchNormResult& norm, std::int64_t part) {
  return part == 0 ? norm.y : part == 1 ? norm.mean : norm.variance;
}

}  // namespace

// clang-format off
const std::vector<ChainOp>& chain_ops() {
#define OP(name, make, ...) {name, [](const Tensors& x, const Attributes& a) -> Tensor { static_cast<void>(x); static_cast<void>(a); return __VA_ARGS__; }, make}
  static const std::vector<ChainOp> ops = {
      OP("neg", unary, -x[0]),
      OP("abs", kinked, abs(x[0])),
      OP("sign", [](Chain& c, const std::string& op) { return apart(c.x()) && beside(c, op); }, sign(x[0])),
      OP("relu", kinked, relu(x[0])),
      OP("square", unary, square(x[0])),
      OP("sqrt", of_positive, sqrt(x[0])),
      OP("rsqrt", of_positive, rsqrt(x[0])),
      OP("reciprocal", of_positive, reciprocal(x[0])),
      OP("exp", unary, exp(x[0])),
      OP("expm1", unary, expm1(x[0])),
      OP("log", of_positive, log(x[0])),
      OP("log1p", of_positive, log1p(x[0])),
      OP("sin", unary, sin(x[0])),
      OP("cos", unary, cos(x[0])),
      OP("tan", of_bounded, tan(x[0])),
      OP("atan", unary, atan(x[0])),
      OP("tanh", unary, tanh(x[0])),
      OP("erf", unary, erf(x[0])),
      OP("sigmoid", unary, sigmoid(x[0])),
      OP("gelu", unary, gelu(x[0])),
      OP("gelu_tanh", unary, gelu_tanh(x[0])),
      OP("silu", unary, silu(x[0])),
      OP("softplus", unary, softplus(x[0])),
      OP("elu", unary, elu(x[0])),
      OP("floor", jumps(0), floor(x[0])),
      OP("ceil", jumps(0), ceil(x[0])),
      OP("round", jumps(0.5), round(x[0])),
      OP("cast", jumps(0), cast(cast(x[0], DType::i64), DType::f64)),
      OP("stop_gradient", beside, stop_gradient(x[0])),
      OP("activate", activated, activate(x[0], activation_of(a))),
      OP("add", binary, x[0] + x[1]),
      OP("sub", binary, x[0] - x[1]),
      OP("mul", binary, x[0] * x[1]),
      OP("div", by_positive, x[0] / x[1]),
      OP("pow", power, pow(x[0], x[1])),
      OP("maximum", binary_apart, maximum(x[0], x[1])),
      OP("minimum", binary_apart, minimum(x[0], x[1])),
      OP("mod", modulo, mod(x[0], x[1])),
      OP("squared_difference", binary, squared_difference(x[0], x[1])),
      OP("leaky_relu", leaky, leaky_relu(x[0], x[1])),
      OP("atan2", by_positive, atan2(x[0], x[1])),
      OP("shifted", shifted, x[0] + static_cast<double>(a.one("halves")) / 2),
      OP("scaled", scaled, x[0] * std::ldexp(1, static_cast<int>(a.one("exponent")))),
      OP("clamp", clamped, clamp(x[0], a.one("low"), a.one("high"))),
      OP("equal", compared, equal(x[0], x[1])),
      OP("not_equal", compared, not_equal(x[0], x[1])),
      OP("less", compared, less(x[0], x[1])),
      OP("less_equal", compared, less_equal(x[0], x[1])),
      OP("greater", compared, greater(x[0], x[1])),
      OP("greater_equal", compared, greater_equal(x[0], x[1])),
      OP("logical_and", both, logical_and(x[0], x[1])),
      OP("logical_or", both, logical_or(x[0], x[1])),
      OP("logical_xor", both, logical_xor(x[0], x[1])),
      OP("logical_not", negated, logical_not(x[0])),
      OP("is_finite", classified, is_finite(x[0])),
      OP("is_nan", classified, is_nan(x[0])),
      OP("is_inf", classified, is_inf(x[0])),
      OP("is_finite_all", classified, is_finite_all(x)),
      OP("any", quantified, any(x[0], reduce_options(a))),
      OP("all", quantified, all(x[0], reduce_options(a))),
      OP("select", chosen, select(x[0], x[1], x[2])),
      OP("where", found, where(x[0])),
      OP("sum", reduced, sum(x[0], reduce_options(a))),
      OP("mean", reduced, mean(x[0], reduce_options(a))),
      OP("prod", reduced, prod(x[0], reduce_options(a))),
      OP("variance", reduced, variance(x[0], reduce_options(a))),
      OP("stddev", deviation, stddev(x[0], reduce_options(a))),
      OP("logsumexp", reduced, logsumexp(x[0], reduce_options(a))),
      OP("max", extreme, max(x[0], reduce_options(a))),
      OP("min", extreme, min(x[0], reduce_options(a))),
      OP("argmax", extreme_place, argmax(x[0], a.axis())),
      OP("argmin", extreme_place, argmin(x[0], a.axis())),
      OP("cumsum", cumulative, cumsum(x[0], {.axis = a.axis(), .exclusive = a.one("exclusive") != 0, .reverse = a.one("reverse") != 0})),
      OP("sum_to_shape", unbroadcast, sum_to_shape(x[0], a.shape())),
      OP("matmul", product, matmul(x[0], x[1], {.transpose_a = a.one("transpose_a") != 0, .transpose_b = a.one("transpose_b") != 0})),
      OP("dense", layer, dense(x[0], x[1], or_none(x, 2), activation_of(a))),
      OP("einsum", summed_products, einsum(a.text, x)),
      OP("scaled_dot_product_attention", attention, scaled_dot_product_attention(x[0], x[1], x[2], or_none(x, 3), {.causal = a.one("causal") != 0})),
      OP("reshape", shaped, reshape(x[0], a.shape())),
      OP("expand_dims", new_axis, expand_dims(x[0], a.axis())),
      OP("squeeze", squeezed, squeeze(x[0], a.axes())),
      OP("flatten_from", along, flatten_from(x[0], a.axis())),
      OP("transpose", permuted, transpose(x[0], a.axes())),
      OP("broadcast_to", spread, broadcast_to(x[0], a.shape())),
      OP("concat", joined, concat(x, a.axis())),
      OP("stack", joined, stack(x, a.axis())),
      OP("unstack", one_of_parts, unstack(x[0], a.axis()).at(static_cast<std::size_t>(a.one("part")))),
      OP("split", one_of_parts, split(x[0], a["extents"], a.axis()).at(static_cast<std::size_t>(a.one("part")))),
      OP("slice", box, slice(x[0], a["begin"], a["extents"])),
      OP("strided_slice", strided, strided_slice(x[0], ranges(a))),
      OP("strided_slice_gradient", unstrided, strided_slice_gradient(x[0], a.shape(), ranges(a))),
      OP("reverse", reversed, reverse(x[0], a.axes())),
      OP("roll", rolled, roll(x[0], a["shifts"], a.axes())),
      OP("tile", repeated, tile(x[0], a["multiples"])),
      OP("pad", padded, pad(x[0], a["before"], a["after"], {.mode = static_cast<PadMode>(a.one("mode")), .value = static_cast<double>(a.one("value"))})),
      OP("gather", looked_up, gather(x[0], x[1], a.axis())),
      OP("embedding_lookup", looked_up, embedding_lookup(x[0], x[1])),
      OP("gather_nd", coordinates_read, gather_nd(x[0], x[1])),
      OP("take_along_axis", read_along, take_along_axis(x[0], x[1], a.axis())),
      OP("one_hot", marked, one_hot(x[0], a.one("depth"), DType::f64)),
      OP("scatter_add", scattered, scatter_add(x[0], x[1], a.one("rows"), a.axis())),
      OP("scatter_nd", scattered_nd, scatter_nd(x[0], x[1], a.shape())),
      OP("tensor_scatter_add", added_at, tensor_scatter_add(x[0], x[1], x[2])),
      OP("unsorted_segment_sum", segments, unsorted_segment_sum(x[0], x[1], a.one("segments"))),
      OP("segment_sum", segments, segment_sum(x[0], x[1])),
      OP("sort", sorted, sort(x[0], sort_options(a))),
      OP("argsort", sorted, argsort(x[0], sort_options(a))),
      OP("top_k", largest, top_k(x[0], a.one("k")).values),
      OP("softmax", along, softmax(x[0], a.axis())),
      OP("log_softmax", along, log_softmax(x[0], a.axis())),
      OP("sparse_softmax_cross_entropy", labelled, sparse_softmax_cross_entropy(x[0], x[1])),
      OP("softmax_cross_entropy", weighed, softmax_cross_entropy(x[0], x[1])),
      OP("sigmoid_cross_entropy", weighed, sigmoid_cross_entropy(x[0], x[1])),
      OP("layer_norm", normalised, layer_norm(x[0], or_none(x, 1), or_none(x, 2), {.axis = a.axis()})),
      OP("rms_norm", normalised, rms_norm(x[0], or_none(x, 1), {.axis = a.axis()})),
      OP("group_norm", normalised, group_norm(x[0], or_none(x, 1), or_none(x, 2), {.groups = a.one("groups")})),
      OP("batch_norm", normalised, batch_norm_part(batch_norm(x[0], or_none(x, 1), or_none(x, 2)), a.one("part"))),
      OP("batch_norm_inference", normalised, batch_norm_inference(x[0], x[1], x[2], or_none(x, 3), or_none(x, 4))),
      OP("conv1d", convolved(1), conv1d(x[0], x[1], or_none(x, 2), windows<Conv1dOptions>(a))),
      OP("conv2d", convolved(2), conv2d(x[0], x[1], or_none(x, 2), windows<Conv2dOptions>(a))),
      OP("conv3d", convolved(3), conv3d(x[0], x[1], or_none(x, 2), windows<Conv3dOptions>(a))),
      OP("depthwise_conv2d", convolved(2), depthwise_conv2d(x[0], x[1], or_none(x, 2), windows<Conv2dOptions>(a))),
      OP("conv1d_transpose", convolved(1), conv1d_transpose(x[0], x[1], or_none(x, 2), windows<Conv1dTransposeOptions>(a))),
      OP("conv2d_transpose", convolved(2), conv2d_transpose(x[0], x[1], or_none(x, 2), windows<Conv2dTransposeOptions>(a))),
      OP("conv3d_transpose", convolved(3), conv3d_transpose(x[0], x[1], or_none(x, 2), windows<Conv3dTransposeOptions>(a))),
      OP("conv1d_input_gradient", convolved(1), conv1d_input_gradient(x[0], x[1], a.shape(), windows<Conv1dOptions>(a))),
      OP("conv2d_input_gradient", convolved(2), conv2d_input_gradient(x[0], x[1], a.shape(), windows<Conv2dOptions>(a))),
      OP("conv3d_input_gradient", convolved(3), conv3d_input_gradient(x[0], x[1], a.shape(), windows<Conv3dOptions>(a))),
      OP("conv1d_weight_gradient", convolved(1), conv1d_weight_gradient(x[0], x[1], a.shape(), windows<Conv1dOptions>(a))),
      OP("conv2d_weight_gradient", convolved(2), conv2d_weight_gradient(x[0], x[1], a.shape(), windows<Conv2dOptions>(a))),
      OP("conv3d_weight_gradient", convolved(3), conv3d_weight_gradient(x[0], x[1], a.shape(), windows<Conv3dOptions>(a))),
      OP("max_pool1d", pooled(1), max_pool1d(x[0], windows<Pool1dOptions>(a))),
      OP("max_pool2d", pooled(2), max_pool2d(x[0], windows<Pool2dOptions>(a))),
      OP("max_pool3d", pooled(3), max_pool3d(x[0], windows<Pool3dOptions>(a))),
      OP("avg_pool1d", pooled(1), avg_pool1d(x[0], windows<Pool1dOptions>(a))),
      OP("avg_pool2d", pooled(2), avg_pool2d(x[0], windows<Pool2dOptions>(a))),
      OP("avg_pool3d", pooled(3), avg_pool3d(x[0], windows<Pool3dOptions>(a))),
      OP("global_max_pool", pooled_wholly, global_max_pool(x[0], {.keep_dims = a.one("keep_dims") != 0})),
      OP("global_avg_pool", pooled_wholly, global_avg_pool(x[0], {.keep_dims = a.one("keep_dims") != 0})),
      // Taken by others only.
      OP("integers", [](Chain&, const std::string&) { return false; }, integer_tensor(a)),
  };
#undef OP
  return ops;
}
// clang-format on

}  // namespace lockstep::testing
