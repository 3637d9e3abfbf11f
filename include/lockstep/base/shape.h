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
// stored in place. Shape{} is the shape of a scalar (rank 0, one element). Errors are
// InvalidArgument, name the line that `at` captures, and begin with `op` for a caller that says
// what it wants the shape for.
class LOCKSTEP_EXPORT Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // Throws for a negative extent, more than kMaxRank of them, or more elements than any memory
  // holds.
  Shape(std::initializer_list<std::int64_t> dims, SourceLocation at = SourceLocation::current(),
        const char* op = "Shape")
      : Shape(std::span(dims.begin(), dims.size()), at, op) {}
  explicit Shape(std::span<const std::int64_t> dims, SourceLocation at = SourceLocation::current(),
                 const char* op = "Shape");

  int rank() const { return rank_; }
  // Extent of an axis; a negative axis counts from the end. Throws out of range.
  std::int64_t dim(int axis, SourceLocation at = SourceLocation::current()) const;
  // Unchecked extent of axis 0 <= axis < rank().
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  std::int64_t num_elements() const;

  // This shape with the extent of one axis replaced, or one axis removed or inserted (size 1 unless
  // given). Throws as the constructor and dim().
  Shape with_dim(int axis, std::int64_t extent, SourceLocation at = SourceLocation::current(),
                 const char* op = "Shape::with_dim") const;
  Shape without_axis(int axis, SourceLocation at = SourceLocation::current()) const;
  Shape with_axis(int axis, std::int64_t extent = 1, SourceLocation at = SourceLocation::current(),
                  const char* op = "Shape::with_axis") const;

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
