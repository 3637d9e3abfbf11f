// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/einsum.h>

#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "ops/einsum_equation.h"
#include "ops/result.h"

namespace lockstep {
namespace {

struct Labelled {
  Tensor x;
  Labels labels;

  std::int64_t extent(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label) - labels.begin();
    return x.dim(static_cast<int>(at));
  }
  std::int64_t extent(const Labels& of) const {
    std::int64_t product = 1;
    for (const int label : of) product *= extent(label);
    return product;
  }
};

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Labelled ordered(const Labelled& in, const Labels& order) {
  if (in.labels == order) return in;
  std::vector<int> permutation;
  for (const int label : order)
    permutation.push_back(
        static_cast<int>(std::find(in.labels.begin(), in.labels.end(), label) - in.labels.begin()));
  return {transpose(in.x, permutation), order};
}

Labelled summed(const Labelled& in, const Labels& kept) {
  std::vector<int> axes;
  for (std::size_t axis = 0; axis < in.labels.size(); ++axis)
    if (!has(kept, in.labels[axis])) axes.push_back(static_cast<int>(axis));
  if (axes.empty()) return in;
  return {sum(in.x, {.axes = axes}), filtered(in.labels, [&](int l) { return has(kept, l); })};
}

// The diagonal of two axes at the end: in rows of n + 1 elements, their first ones.
Tensor last_diagonal(const Tensor& x) {
  const std::int64_t n = x.dim(-1);
  const Shape rest = x.shape().without_axis(-1).without_axis(-1);
  const int rank = rest.rank();
  const Tensor flat = reshape(x, rest.with_axis(rank, n * n));
  std::vector<std::int64_t> zeros(static_cast<std::size_t>(rank) + 1, 0), after = zeros;
  after.back() = n;
  const Tensor rows =
      reshape(pad(flat, zeros, after), rest.with_axis(rank, n).with_axis(rank + 1, n + 1));
  zeros.push_back(0);
  const Shape column = rows.shape().with_dim(-1, 1);
  const Tensor first =
      slice(rows, zeros, std::vector<std::int64_t>(column.dims().begin(), column.dims().end()));
  return reshape(first, column.without_axis(-1));
}

// Without labels that occur twice.
Labelled diagonal(Labelled in) {
  for (std::size_t i = 0; i < in.labels.size();) {
    const int label = in.labels[i];
    const auto again =
        std::find(in.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, in.labels.end(), label);
    if (again == in.labels.end()) {
      ++i;
      continue;
    }
    std::vector<int> order;
    const auto second = static_cast<std::size_t>(again - in.labels.begin());
    Labels labels;
    for (std::size_t axis = 0; axis < in.labels.size(); ++axis) {
      if (axis == i || axis == second) continue;
      order.push_back(static_cast<int>(axis));
      labels.push_back(in.labels[axis]);
    }
    order.push_back(static_cast<int>(i));
    order.push_back(static_cast<int>(second));
    labels.push_back(label);
    in = {last_diagonal(transpose(in.x, order)), labels};
    i = 0;
  }
  return in;
}

// An operand of a product of matrices: batch axes, then rows and columns.
struct Matrices {
  Tensor x;
  bool transposed;
};

// `first` and `second` become one axis each; in the other order where that saves a copy.
Matrices matrices(const Labelled& in, const std::vector<std::int64_t>& batch_extents,
                  const Labels& batch, const Labels& first, const Labels& second) {
  const bool swapped =
      !first.empty() && !second.empty() && in.labels == joined(joined(batch, second), first);
  const Labels& rows = swapped ? second : first;
  const Labels& cols = swapped ? first : second;
  const Labelled x = ordered(in, joined(joined(batch, rows), cols));
  std::vector<std::int64_t> dims = batch_extents;
  dims.push_back(x.extent(rows));
  dims.push_back(x.extent(cols));
  return {reshape(x.x, Shape(std::span<const std::int64_t>(dims))), swapped};
}

// Their batch axes, one for all unless they broadcast.
std::vector<std::int64_t> batch_extents(const Labelled& in, const Labelled& other,
                                        const Labels& batch) {
  std::vector<std::int64_t> extents;
  bool equal = true;
  for (const int label : batch) {
    extents.push_back(in.extent(label));
    equal = equal && in.extent(label) == other.extent(label);
  }
  if (!equal) return extents;
  return batch.empty() ? extents : std::vector{in.extent(batch)};
}

// The products of a and b, summed over what is not kept.
Labelled contracted(const Labelled& left, const Labelled& right, const Labels& kept) {
  const Labelled a = summed(left, joined(kept, right.labels));
  const Labelled b = summed(right, joined(kept, left.labels));
  const auto in_b = [&](int l) { return has(b.labels, l); };
  const Labels batch = filtered(a.labels, [&](int l) { return in_b(l) && has(kept, l); });
  const Labels inner = filtered(a.labels, [&](int l) { return in_b(l) && !has(kept, l); });
  const Labels rows = filtered(a.labels, [&](int l) { return !in_b(l); });
  const Labels cols = filtered(b.labels, [&](int l) { return !has(a.labels, l); });
  const Matrices of_a = matrices(a, batch_extents(a, b, batch), batch, rows, inner);
  const Matrices of_b = matrices(b, batch_extents(b, a, batch), batch, inner, cols);
  const Tensor product =
      inner.empty() ? of_a.x * of_b.x  // a column times a row
                    : matmul(of_a.x, of_b.x,
                             {.transpose_a = of_a.transposed, .transpose_b = of_b.transposed});
  std::vector<std::int64_t> dims;
  for (const int label : batch)
    dims.push_back(a.extent(label) == 1 ? b.extent(label) : a.extent(label));
  for (const int label : rows) dims.push_back(a.extent(label));
  for (const int label : cols) dims.push_back(b.extent(label));
  return {reshape(product, Shape(std::span<const std::int64_t>(dims))),
          joined(joined(batch, rows), cols)};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, SourceLocation at) {
  constexpr const char* kOp = "einsum";
  require(!operands.empty(), at, kOp, "expected an operand or more, got none");
  std::vector<Shape> shapes;
  std::vector<const Tensor*> inputs;
  for (const Tensor& operand : operands) {
    require_defined(kOp, "an operand", operand, at);
    require_same_dtype(kOp, operands[0], operand, at);
    require_dtype(is_floating(operand.dtype()) || operand.dtype() == DType::i32 ||
                      operand.dtype() == DType::i64,
                  kOp, operand, "a floating dtype, i32 or i64", at);
    shapes.push_back(operand.shape());
    inputs.push_back(&operand);
  }
  common_device(kOp, inputs, at);
  const EinsumEquation read = read_einsum(equation, shapes, at);
  Labelled product = diagonal({operands[0], read.operands[0]});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    Labels kept = read.result;
    for (std::size_t later = i + 1; later < operands.size(); ++later)
      kept = joined(kept, read.operands[later]);
    product = contracted(product, diagonal({operands[i], read.operands[i]}), kept);
  }
  const Tensor y = ordered(summed(product, read.result), read.result).x;
  return operands.size() == 1 && y.key() == operands[0].key() ? reshape(y, y.shape(), at) : y;
}

}  // namespace lockstep
