// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace lockstep {

// The extents of a tensor, outermost first: a value of at most kMaxRank non-negative dimensions,
// stored in place. Shape{} is the shape of a scalar (rank 0, one element).
class LOCKSTEP_EXPORT Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // Throws InvalidArgument for a negative extent or more than kMaxRank of them.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  // Extent of an axis; a negative axis counts from the end. Throws InvalidArgument out of range.
  std::int64_t dim(int axis) const;
  // Unchecked extent of axis 0 <= axis < rank().
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  std::int64_t num_elements() const;

  // This shape with the extent of one axis replaced, or one axis removed or inserted (size 1 unless
  // given).
  Shape with_dim(int axis, std::int64_t extent) const;
  Shape without_axis(int axis) const;
  Shape with_axis(int axis, std::int64_t extent = 1) const;

  std::string to_string() const;  // "[2, 3]", "[]" for a scalar

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};  // zero beyond rank_, so that == compares values
  int rank_ = 0;
};

// NumPy's broadcasting: axes aligned from the end, extents equal or one of them 1.
// Throws InvalidArgument "[op] ..." naming both shapes when they do not broadcast.
LOCKSTEP_EXPORT Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op,
                                       SourceLocation at = {});

}  // namespace lockstep
