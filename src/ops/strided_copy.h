// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>
#include <lockstep/device/device.h>

#include <cstddef>
#include <cstdint>

#include "ops/functor.h"

namespace lockstep {

// Copies a box of elements between two layouts in host memory: transpose, broadcast, slice, concat.
// Axes are added outermost first, with strides in elements; those that both sides walk like one are
// merged.
class StridedCopy {
 public:
  void add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride);
  // Pointers to the box's first elements.
  void run(std::size_t element_size, const void* from, void* to) const;

  // The merged axes, for kernels of other devices.
  struct Axis {
    std::int64_t extent, from, to;
  };
  LOCKSTEP_HD int rank() const { return rank_; }
  LOCKSTEP_HD const Axis& axis(int i) const { return axes_[i]; }
  std::int64_t num_elements() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank_; ++i) count *= axes_[i].extent;
    return count;
  }

 private:
  template <class T>
  void run_as(const T* from, T* to) const;

  int rank_ = 0;
  Axis axes_[Shape::kMaxRank];
};

// Runs the copy in memory of `device`: at once on the host, in the compute stream of a GPU.
void run_strided(const StridedCopy& copy, std::size_t element_size, const void* from, void* to,
                 Device device);

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
