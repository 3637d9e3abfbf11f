// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/reduce.h>

#include <cstdint>
#include <span>
#include <vector>

#include "ops/result.h"

namespace lockstep {

// A reduction's options applied to a shape.
struct ReducePlan {
  bool reduced[Shape::kMaxRank] = {};
  Shape kept;          // reduced axes have extent 1
  Shape result;        // by keep_dims
  std::int64_t count;  // elements reduced to one

  // Throws InvalidArgument, naming `op`, for an axis that is out of range or named twice.
  ReducePlan(const char* op, const Shape& shape, const ReduceOptions& options, SourceLocation at)
      : kept(shape), count(1) {
    for (int axis = 0; axis < shape.rank(); ++axis) reduced[axis] = options.axes.empty();
    for (const int named : options.axes) {
      const int axis = checked_axis(op, named, shape, at);
      require(!reduced[axis], at, op, "axis ", named, " of shape ", shape, " is named twice");
      reduced[axis] = true;
    }
    std::int64_t dims[Shape::kMaxRank];
    std::size_t rank = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (reduced[axis]) {
        count *= shape[axis];
        kept = kept.with_dim(axis, 1);
      } else {
        dims[rank++] = shape[axis];
      }
    }
    result = options.keep_dims ? kept : Shape(std::span<const std::int64_t>(dims, rank));
  }

  // The reduced axes, in order.
  template <class T>
  std::vector<T> axes() const {
    std::vector<T> axes;
    for (int axis = 0; axis < kept.rank(); ++axis)
      if (reduced[axis]) axes.push_back(static_cast<T>(axis));
    return axes;
  }
};

}  // namespace lockstep
