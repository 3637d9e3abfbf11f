// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <cstddef>
#include <cstdint>

namespace lockstep {

// Copies a box of elements between two layouts in host memory: transpose, broadcast, slice, concat.
// Axes are added outermost first, with strides in elements; those that both sides walk like one are
// merged.
class StridedCopy {
 public:
  void add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride);
  // Pointers to the box's first elements.
  void run(std::size_t element_size, const void* from, void* to) const;

 private:
  template <class T>
  void run_as(const T* from, T* to) const;

  struct Axis {
    std::int64_t extent, from, to;
  };
  int rank_ = 0;
  Axis axes_[Shape::kMaxRank];
};

// Elements between neighbours along each axis of a row-major tensor.
struct Strides {
  std::int64_t values[Shape::kMaxRank];
  explicit Strides(const Shape& shape) {
    std::int64_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      values[axis] = stride;
      stride *= shape[axis];
    }
  }
  std::int64_t operator[](int axis) const { return values[axis]; }
};

}  // namespace lockstep
