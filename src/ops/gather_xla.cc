// SPDX-License-Identifier: Apache-2.0
#include "ops/around_axis.h"
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

// Indices as a list.
Expr listed(const char* op, const Tensor& indices) {
  return hlo::reshape(hlo::operand(op, indices), Shape{indices.num_elements()});
}

// Moved into [0, extent).
Expr inside(const Expr& indices, std::int64_t extent) {
  return hlo::minimum(hlo::maximum(indices, 0), extent - 1);
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int axis, const Shape& shape) {
  const std::int64_t count = indices.num_elements();
  const Expr source = hlo::operand("gather", x);
  const Expr places = listed("gather", indices);
  if (shape.num_elements() == 0 || x.num_elements() == 0)
    return hlo::tensor(hlo::constant(0, {source.element(), shape}), x.dtype());
  const AroundAxis around(x.shape(), axis);
  const Shape table{around.outer, around.along, around.inner};
  const xla::Node operands[] = {hlo::reshape(source, table).node(), places.node()};
  const Expr picked(xla::current_trace()->emit(
      "stablehlo.gather", operands,
      "dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], "
      "start_index_map = [1], index_vector_dim = 1>, slice_sizes = " +
          hlo::array(std::vector<std::int64_t>{around.outer, 1, around.inner}),
      hlo::Type{source.element(), Shape{around.outer, count, around.inner}}));
  return hlo::tensor(hlo::reshape(picked, shape), x.dtype());
}

Tensor scatter_add(const Tensor& base, const Tensor& indices, const Tensor& updates, int axis,
                   const Shape& shape) {
  // Added wide: the sum of 16-bit floats is rounded once.
  const Expr added = hlo::wide_operand("scatter_add", updates);
  const AroundAxis around(shape, axis);
  const Shape table{around.outer, around.along, around.inner};
  const Expr start = base.defined() ? hlo::reshape(hlo::wide_operand("scatter_add", base), table)
                                    : hlo::constant(0, {added.element(), table});
  if (updates.num_elements() == 0 || shape.num_elements() == 0)
    return hlo::tensor(hlo::reshape(start, shape), updates.dtype());
  const Expr places = listed("scatter_add", indices);
  const Shape rows{around.outer, indices.num_elements(), around.inner};
  const xla::Node operands[] = {start.node(), places.node(), hlo::reshape(added, rows).node()};
  const Expr sum(xla::current_trace()->emit(
      "stablehlo.scatter", operands,
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], "
      "inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>",
      start.type(), hlo::reducer("add", added.element())));
  return hlo::tensor(hlo::reshape(sum, shape), updates.dtype());
}

Tensor row_numbers(const Tensor& indices, std::span<const std::int64_t> extents, Outside outside) {
  const Expr all = hlo::convert(hlo::operand("row_numbers", indices), hlo::Element::i64);
  const Shape shape = indices.shape().without_axis(-1);
  const auto last = static_cast<std::size_t>(indices.rank()) - 1;
  std::vector<std::int64_t> begin(last + 1),
      box(indices.shape().dims().begin(), indices.shape().dims().end());
  box[last] = 1;
  Expr number = hlo::constant(0, {hlo::Element::i64, shape});
  Expr valid = hlo::constant(1, {hlo::Element::boolean, shape});
  for (std::size_t c = 0; c < extents.size(); ++c) {
    begin[last] = static_cast<std::int64_t>(c);
    const Expr index = hlo::reshape(hlo::slice(all, begin, box), shape);
    const Expr moved = inside(index, extents[c]);
    number = number * extents[c] + moved;
    valid = valid & hlo::equal(index, moved);
  }
  if (outside == Outside::nowhere)
    number = hlo::select(valid, number, hlo::constant(-1, {hlo::Element::i64, Shape{}}));
  return hlo::tensor(number, DType::i64);
}

Tensor numbers_along(const Tensor& indices, const Shape& shape, int axis) {
  const AroundAxis taken(indices.shape(), axis);
  const hlo::Type box{hlo::Element::i64, {taken.outer, taken.along, taken.inner}};
  const Expr along = hlo::convert(hlo::operand("numbers_along", indices), hlo::Element::i64);
  const Expr moved = inside(hlo::reshape(along, box.shape), shape[axis]);
  const Expr number = (hlo::iota(box, 0) * shape[axis] + moved) * taken.inner + hlo::iota(box, 2);
  return hlo::tensor(hlo::reshape(number, indices.shape()), DType::i64);
}

Tensor one_hot(const Tensor& indices, std::int64_t, DType dtype, const Shape& shape) {
  const Expr places = hlo::operand("one_hot", indices);
  const Expr numbers = hlo::iota({places.element(), shape}, shape.rank() - 1);
  const Expr column = hlo::reshape(places, indices.shape().with_axis(indices.rank()));
  return hlo::tensor(hlo::equal(numbers, column), dtype);
}

}  // namespace lockstep::traced
