// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

// Indices as a list, one axis.
Expr flat_indices(const char* op, const Tensor& indices) {
  return hlo::reshape(hlo::operand(op, indices), Shape{indices.num_elements()});
}

Shape as_rows(std::int64_t rows, const Shape& shape, int skipped) {
  std::int64_t width = 1;
  for (int axis = skipped; axis < shape.rank(); ++axis) width *= shape[axis];
  return {rows, width};
}

}  // namespace

Tensor transpose(const Tensor& x, std::span<const int> permutation) {
  const std::vector<std::int64_t> axes(permutation.begin(), permutation.end());
  return hlo::tensor(hlo::transpose(hlo::operand("transpose", x), axes), x.dtype());
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  return hlo::tensor(hlo::broadcast(hlo::operand("broadcast_to", x), shape), x.dtype());
}

Tensor concat(std::span<const Tensor> parts, int axis) {
  std::vector<Expr> operands;
  operands.reserve(parts.size());
  for (const Tensor& part : parts) operands.push_back(hlo::operand("concat", part));
  return hlo::tensor(hlo::concat(operands, axis), parts[0].dtype());
}

Tensor slice(const Tensor& x, std::span<const std::int64_t> begin,
             std::span<const std::int64_t> extents) {
  return hlo::tensor(hlo::slice(hlo::operand("slice", x), begin, extents), x.dtype());
}

Tensor pad(const Tensor& x, std::span<const std::int64_t> before,
           std::span<const std::int64_t> after) {
  const std::vector<std::int64_t> between(before.size(), 0);
  return hlo::tensor(hlo::pad(hlo::operand("pad", x), before, after, between), x.dtype());
}

Tensor gather(const Tensor& x, const Tensor& indices, const Shape& shape) {
  const std::int64_t count = indices.num_elements();
  const Expr rows = hlo::operand("gather", x);
  const Expr places = hlo::reshape(hlo::operand("gather", indices), Shape{count});
  if (shape.num_elements() == 0)
    return hlo::tensor(hlo::constant(0, {rows.element(), shape}), x.dtype());
  const Shape table = as_rows(x.dim(0), x.shape(), 1);
  const xla::Node operands[] = {hlo::reshape(rows, table).node(), places.node()};
  const Expr picked(xla::current_trace()->emit(
      "stablehlo.gather", operands,
      "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = 1>, slice_sizes = " +
          hlo::array(std::vector<std::int64_t>{1, table[1]}),
      hlo::Type{rows.element(), Shape{count, table[1]}}));
  return hlo::tensor(hlo::reshape(picked, shape), x.dtype());
}

Tensor scatter_add(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  // Added wide: the sum of 16-bit floats is rounded once.
  const Expr added = hlo::wide_operand("scatter_add", updates);
  const Expr zeros = hlo::constant(0, {added.element(), as_rows(shape[0], shape, 1)});
  if (updates.num_elements() == 0 || shape.num_elements() == 0)
    return hlo::tensor(hlo::reshape(zeros, shape), updates.dtype());
  const Expr places = flat_indices("scatter_add", indices);
  const Shape rows = as_rows(indices.num_elements(), updates.shape(), indices.rank());
  const xla::Node operands[] = {zeros.node(), places.node(), hlo::reshape(added, rows).node()};
  const Expr sum(xla::current_trace()->emit(
      "stablehlo.scatter", operands,
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
      zeros.type(), hlo::reducer("add", added.element())));
  return hlo::tensor(hlo::reshape(sum, shape), updates.dtype());
}

Tensor one_hot(const Tensor& indices, std::int64_t, DType dtype, const Shape& shape) {
  const Expr places = hlo::operand("one_hot", indices);
  const Expr numbers = hlo::iota({places.element(), shape}, shape.rank() - 1);
  const Expr column = hlo::reshape(places, indices.shape().with_axis(indices.rank()));
  return hlo::tensor(hlo::equal(numbers, column), dtype);
}

}  // namespace lockstep::traced
