// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Sorting along an axis, of every dtype. A NaN counts as the largest value, -0 equals 0, and equal
// elements keep their order in either direction, so that there is one right result. Indices are
// i32. Gradients go to the places that the values came from. InvalidArgument for a scalar and for
// an axis of 2^31 or more elements.

enum class SortDirection { ascending, descending };
struct SortOptions {
  int axis = -1;
  SortDirection direction = SortDirection::ascending;
};

LOCKSTEP_EXPORT Tensor sort(const Tensor& x, const SortOptions& options = {},
                            SourceLocation at = SourceLocation::current());
// The indices along the axis with which take_along_axis gives sort(x): no gradient.
LOCKSTEP_EXPORT Tensor argsort(const Tensor& x, const SortOptions& options = {},
                               SourceLocation at = SourceLocation::current());

struct TopK {
  Tensor values, indices;
};
// The k largest elements along the last axis, the largest first, and where they are. InvalidArgument
// unless the axis has as many.
LOCKSTEP_EXPORT TopK top_k(const Tensor& x, std::int64_t k,
                           SourceLocation at = SourceLocation::current());

}  // namespace lockstep
