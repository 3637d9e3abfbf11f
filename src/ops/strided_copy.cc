// SPDX-License-Identifier: Apache-2.0
#include "ops/strided_copy.h"

#include "ops/cuda/kernels.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// Rows of a transposed pair of axes are copied in squares. Larger ones fall out of the first cache where
// rows are a power of two apart.
constexpr std::int64_t kSquare = 16;

template <class T>
void copy_row(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
              std::int64_t n) {
  if (to_stride != 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  } else if (from_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (from_stride == 0) {
    std::fill_n(to, n, *from);
  } else if (from_stride == -1) {  // known to the compiler, which then moves vectors
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
  }
}

// to[i * to_stride + j] = from[i + j * from_stride]
template <class T>
void copy_transposed(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                     std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i0 = 0; i0 < rows; i0 += kSquare)
    for (std::int64_t j0 = 0; j0 < cols; j0 += kSquare) {
      const std::int64_t i1 = std::min(rows, i0 + kSquare), j1 = std::min(cols, j0 + kSquare);
      for (std::int64_t i = i0; i < i1; ++i)
        for (std::int64_t j = j0; j < j1; ++j) to[i * to_stride + j] = from[i + j * from_stride];
    }
}

}  // namespace

void StridedCopy::add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride) {
  if (extent == 1) return;
  if (rank_ > 0) {
    Axis& outer = axes_[rank_ - 1];
    if (outer.from == extent * from_stride && outer.to == extent * to_stride) {
      outer = {outer.extent * extent, from_stride, to_stride};
      return;
    }
  }
  axes_[rank_++] = {extent, from_stride, to_stride};
}

template <class T>
void StridedCopy::run_as(const T* from, T* to) const {
  if (rank_ == 0) {
    *to = *from;
    return;
  }
  const Axis last = axes_[rank_ - 1];
  // The axis along which the source is contiguous, when that is not the target's innermost.
  int across = -1;
  if (last.from != 1 && last.from != 0 && last.to == 1)
    for (int i = 0; i < rank_ - 1; ++i)
      if (axes_[i].from == 1) across = i;
  std::int64_t index[Shape::kMaxRank] = {};
  while (true) {
    if (across >= 0)
      copy_transposed(from, last.from, to, axes_[across].to, axes_[across].extent, last.extent);
    else
      copy_row(from, last.from, to, last.to, last.extent);
    int axis = rank_ - 2;
    for (; axis >= 0; --axis) {
      if (axis == across) continue;
      const bool carries = ++index[axis] == axes_[axis].extent;
      if (carries) index[axis] = 0;
      const std::int64_t steps = carries ? 1 - axes_[axis].extent : 1;
      from += steps * axes_[axis].from;
      to += steps * axes_[axis].to;
      if (!carries) break;
    }
    if (axis < 0) return;
  }
}

void StridedCopy::run(std::size_t element_size, const void* from, void* to) const {
  for (int i = 0; i < rank_; ++i)
    if (axes_[i].extent == 0) return;
  const auto as = [&]<class T>(T) { run_as(static_cast<const T*>(from), static_cast<T*>(to)); };
  switch (element_size) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      return as(std::uint64_t{});
  }
}

void run_strided(const StridedCopy& copy, std::size_t element_size, const void* from, void* to,
                 Device device) {
  if (device.is_host()) return copy.run(element_size, from, to);
  if constexpr (cuda::kBuilt) cuda::copy_strided(copy, element_size, from, to, device);
}

}  // namespace lockstep
