// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/tensor/tensor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "ops/result.h"

namespace lockstep {

// What the ops that take indices have in common.

// Throws InvalidArgument unless they are i32 or i64.
void require_indices(const char* op, const Tensor& indices, SourceLocation at);

// `front`, and `back` without its first `skipped` axes.
Shape joined(const char* op, const Shape& front, const Shape& back, int skipped, SourceLocation at);

// Calls f(const I* indices, count) with the index type.
template <class F>
void visit_indices(const Tensor& indices, F&& f) {
  if (indices.dtype() == DType::i32)
    f(read<std::int32_t>(indices), indices.num_elements());
  else
    f(read<std::int64_t>(indices), indices.num_elements());
}

enum class Negative { refused, passed_over };

// Whether all are below `bound`, and unless passed over not negative. By sign bits, which any vector
// instructions can gather, of as many bits as indices have.
template <class I>
bool all_inside(const I* indices, std::int64_t count, std::int64_t bound,
                Negative negative = Negative::refused) {
  using Bits = std::make_unsigned_t<I>;
  constexpr Bits kMost = std::numeric_limits<I>::max();
  const auto last = static_cast<Bits>(std::min<std::int64_t>(bound - 1, kMost));
  Bits outside = 0;
  if (negative == Negative::refused) {
    for (std::int64_t place = 0; place < count; ++place) {
      const auto index = static_cast<Bits>(indices[place]);
      outside |= index | (last - index);
    }
  } else {
    for (std::int64_t place = 0; place < count; ++place) {
      const auto index = static_cast<Bits>(indices[place]);
      outside |= ~index & (last - index);
    }
  }
  return outside <= kMost;
}

// Throws InvalidArgument that names the first index outside and its place.
template <class I>
void require_inside(const char* op, const I* indices, std::int64_t count, std::int64_t bound,
                    SourceLocation at, Negative negative = Negative::refused) {
  if (all_inside(indices, count, bound, negative)) return;
  for (std::int64_t place = 0; place < count; ++place)
    require(all_inside(indices + place, 1, bound, negative), at, op, "index ", indices[place],
            " at place ", place, " is outside the ", bound, " rows");
}

// Where a number that is out of range leads in a traced step.
enum class Outside { nearest, nowhere };

// The coordinates along the last axis of `indices`, as many as `extents`, as one number in
// row-major order: i64. Not recorded. Out of range: InvalidArgument on CPUs, -1 on GPUs, and on TPUs
// the nearest coordinate, or -1 for `nowhere`.
Tensor row_numbers(const char* op, const Tensor& indices, std::span<const std::int64_t> extents,
                   Outside outside, SourceLocation at);

// The same for indices along an axis of a tensor of `shape`: the number of each element.
Tensor numbers_along(const char* op, const Tensor& indices, const Shape& shape, int axis,
                     SourceLocation at);

}  // namespace lockstep
