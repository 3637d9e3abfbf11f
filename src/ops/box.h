// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <span>
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

// Copies a box of one tensor to one of another, which start at these places.
void copy_box(const Tensor& from, const Extents& from_begin, Tensor& to, const Extents& to_begin,
              const Extents& extents);

// Parts that stand side by side along an axis of the whole: copies them into it, or out of it. On the
// host. Undefined parts are left out, but not the places that `extents` says they have.
void join_parts(std::span<const Tensor> parts, const Extents& extents, int axis, Tensor& whole);
void part_whole(const Tensor& whole, const Extents& extents, int axis, std::span<Tensor> parts);

// The part [begin, begin + extent) of x along an axis, not recorded; whole rows without a copy.
Tensor part_of(const char* op, const Tensor& x, int axis, std::int64_t begin, std::int64_t extent,
               SourceLocation at);

}  // namespace lockstep
