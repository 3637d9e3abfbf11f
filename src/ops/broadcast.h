// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <cstdint>
#include <utility>

namespace lockstep {

// How N operands are walked to fill a row-major result that they broadcast to: axes that all
// operands walk alike are merged and axes of extent 1 dropped, so that most calls are left with one
// or two.
template <int N>
struct Broadcast {
  int rank = 0;  // at least 1 when built
  std::int64_t extents[Shape::kMaxRank] = {};
  std::int64_t strides[Shape::kMaxRank][N] = {};  // in elements; 0 along axes that are broadcast

  Broadcast(const Shape& result, const Shape* const (&operands)[N]) {
    std::int64_t below[N];  // elements of each operand under one index of the current axis
    for (std::int64_t& count : below) count = 1;
    for (int back = 1; back <= result.rank(); ++back) {  // innermost axis first
      const std::int64_t extent = result[result.rank() - back];
      if (extent == 1) continue;
      std::int64_t stride[N];
      for (int k = 0; k < N; ++k) {
        const Shape& shape = *operands[k];
        const std::int64_t own = back <= shape.rank() ? shape[shape.rank() - back] : 1;
        stride[k] = own == 1 ? 0 : below[k];
        below[k] *= own;
      }
      append(extent, stride);
    }
    if (rank == 0) extents[rank++] = 1;
    for (int a = 0, b = rank - 1; a < b; ++a, --b) {
      std::swap(extents[a], extents[b]);
      std::swap(strides[a], strides[b]);
    }
  }

  // The two innermost axes; where rank is 1, one row.
  std::int64_t cols() const { return extents[rank - 1]; }
  std::int64_t rows() const { return rank > 1 ? extents[rank - 2] : 1; }
  std::int64_t col_stride(int operand) const { return strides[rank - 1][operand]; }
  std::int64_t row_stride(int operand) const { return rank > 1 ? strides[rank - 2][operand] : 0; }

  // Calls f(const std::int64_t (&operand_offsets)[N], std::int64_t result_offset) for each block of
  // rows() x cols() results, in order.
  template <class F>
  void for_each_block(F&& f) const {
    const int outer = rank > 2 ? rank - 2 : 0;
    const std::int64_t block = rows() * cols();
    std::int64_t blocks = block == 0 ? 0 : 1;
    for (int axis = 0; axis < outer; ++axis) blocks *= extents[axis];
    std::int64_t index[Shape::kMaxRank] = {};
    std::int64_t offsets[N] = {};
    for (std::int64_t i = 0; i < blocks; ++i) {
      f(offsets, i * block);
      for (int axis = outer - 1; axis >= 0; --axis) {
        const bool carries = ++index[axis] == extents[axis];
        if (carries) index[axis] = 0;
        const std::int64_t steps = carries ? 1 - extents[axis] : 1;
        for (int k = 0; k < N; ++k) offsets[k] += steps * strides[axis][k];
        if (!carries) break;
      }
    }
  }

 private:
  void append(std::int64_t extent, const std::int64_t (&stride)[N]) {
    bool merges = rank > 0;
    for (int k = 0; k < N && merges; ++k)
      merges = stride[k] == strides[rank - 1][k] * extents[rank - 1];
    if (merges) {
      extents[rank - 1] *= extent;
      return;
    }
    extents[rank] = extent;
    for (int k = 0; k < N; ++k) strides[rank][k] = stride[k];
    ++rank;
  }
};

}  // namespace lockstep
