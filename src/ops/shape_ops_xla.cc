// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
using hlo::Expr;

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
           std::span<const std::int64_t> after, double value) {
  const std::vector<std::int64_t> between(before.size(), 0);
  return hlo::tensor(hlo::pad(hlo::operand("pad", x), before, after, between, value), x.dtype());
}

namespace {

// A slice whose strides may be negative, as one that walks forward and is reversed then.
struct ForwardSlice {
  std::vector<std::int64_t> begin, strides, reversed;

  ForwardSlice(std::span<const std::int64_t> from, const Shape& extents,
               std::span<const std::int64_t> steps)
      : begin(from.begin(), from.end()), strides(steps.begin(), steps.end()) {
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const std::int64_t extent = extents[static_cast<int>(i)];
      if (strides[i] > 0) continue;
      if (extent > 0) begin[i] += (extent - 1) * strides[i];
      strides[i] = -strides[i];
      reversed.push_back(static_cast<std::int64_t>(i));
    }
  }
  Expr in_order(const Expr& x) const { return reversed.empty() ? x : hlo::reverse(x, reversed); }
};

}  // namespace

Tensor strided_slice(const Tensor& x, std::span<const std::int64_t> begin,
                     std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  const ForwardSlice forward(begin, Shape(extents), strides);
  const Expr whole = hlo::operand("strided_slice", x);
  const Expr taken = hlo::slice(whole, forward.begin, extents, forward.strides);
  return hlo::tensor(forward.in_order(taken), x.dtype());
}

Tensor strided_slice_gradient(const Tensor& dy, const Shape& shape,
                              std::span<const std::int64_t> begin,
                              std::span<const std::int64_t> strides) {
  const ForwardSlice forward(begin, dy.shape(), strides);
  std::vector<std::int64_t> after, between;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const int axis = static_cast<int>(i);
    const std::int64_t steps = std::max<std::int64_t>(dy.dim(axis) - 1, 0);
    const std::int64_t walked = dy.dim(axis) == 0 ? 0 : steps * forward.strides[i] + 1;
    after.push_back(shape[axis] - forward.begin[i] - walked);
    between.push_back(forward.strides[i] - 1);
  }
  const Expr ordered = forward.in_order(hlo::operand("strided_slice_gradient", dy));
  return hlo::tensor(hlo::pad(ordered, forward.begin, after, between), dy.dtype());
}

}  // namespace lockstep::traced
