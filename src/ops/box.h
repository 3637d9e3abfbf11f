// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <vector>

namespace lockstep {

// Boxes of elements of tensors: concat, slice, pad.

using Extents = std::vector<std::int64_t>;  // a number for each axis

// Zeros, but `begin` for one axis.
Extents box_begin(const Shape& shape, int axis, std::int64_t begin);

// Copies all of one tensor to a box of the other, which starts at `begin` and of which neighbours
// are `strides` apart (negative: backwards; none given: 1), or the other way. On the device of both.
void copy_to_box(const Tensor& from, Tensor& to, const Extents& begin, const Extents& strides = {});
void copy_from_box(const Tensor& from, Tensor& to, const Extents& begin,
                   const Extents& strides = {});

// The part [begin, begin + extent) of x along an axis, not recorded; whole rows without a copy.
Tensor part_of(const char* op, const Tensor& x, int axis, std::int64_t begin, std::int64_t extent,
               SourceLocation at);

}  // namespace lockstep
