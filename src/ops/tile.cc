// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

#include "ops/around_axis.h"
#include "ops/box.h"
#include "ops/result.h"

namespace lockstep {
Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples, SourceLocation at) {
  require_defined("tile", "x", x, at);
  require(multiples.size() == static_cast<std::size_t>(x.rank()), at, "tile", "expected ", x.rank(),
          " numbers for shape ", x.shape(), ", got ", multiples.size());
  Shape shape = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t times = multiples[static_cast<std::size_t>(axis)];
    require(times >= 0, at, "tile", "expected 0 or more times along axis ", axis, " of shape ",
            x.shape(), ", got ", times);
    std::int64_t extent = 0;
    require(!__builtin_mul_overflow(times, x.dim(axis), &extent), at, "tile", times, " times axis ",
            axis, " of shape ", x.shape(), " is more than any memory holds");
    shape = shape.with_dim(axis, extent, at, "tile");
  }
  if (shape.num_elements() == 0) return reshape(slice(reshape(x, {-1}), {0}, {0}), shape, at);
  // Outer axes last: most is written by the last copy, which then moves the longest rows.
  Tensor y = reshape(x, x.shape(), at);
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const std::int64_t times = multiples[static_cast<std::size_t>(axis)];
    if (times == 1) continue;
    const AroundAxis around(y.shape(), axis);
    const std::int64_t block = around.along * around.inner;
    y = reshape(broadcast_to(reshape(y, {around.outer, 1, block}), {around.outer, times, block}),
                y.shape().with_dim(axis, times * around.along), at);
  }
  return y;
}

Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes,
            SourceLocation at) {
  require_defined("roll", "x", x, at);
  require(shifts.size() == axes.size(), at, "roll", "expected a shift for each axis, got ",
          shifts.size(), " shifts and ", axes.size(), " axes");
  Extents total(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = checked_axis("roll", axes[i], x.shape(), at);
    const std::int64_t size = std::max<std::int64_t>(x.dim(axis), 1);
    std::int64_t& sum = total[static_cast<std::size_t>(axis)];
    sum = (sum + shifts[i] % size + size) % size;
  }
  Tensor y = reshape(x, x.shape(), at);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t shift = total[static_cast<std::size_t>(axis)];
    if (shift == 0) continue;
    const auto parts = split(y, {y.dim(axis) - shift, shift}, axis, at);
    y = concat({parts[1], parts[0]}, axis, at);
  }
  return y;
}

}  // namespace lockstep
