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

// Forwards. glibc copies backwards where the ends of both sides are as far from their pages, as rows of
// tensors are: prefetchers do not follow, and it takes up to three times as long.
void copy_forwards(const void* from, void* to, std::size_t bytes) {
  constexpr std::size_t kBlock = 64, kLong = 8192;  // long ones are copied otherwise
  if (bytes < kBlock || bytes > kLong) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  std::size_t i = 0;
  for (; i + kBlock <= bytes; i += kBlock) std::memcpy(target + i, source + i, kBlock);
  std::memcpy(target + bytes - kBlock, source + bytes - kBlock, kBlock);
}

// All elements one value: the first ones are copied on by the C library, in vectors as wide as the CPU's.
template <class T>
void fill_row(T* to, std::int64_t n, T value) {
  std::int64_t done = std::min<std::int64_t>(n, 512 / sizeof(T));
  std::fill_n(to, done, value);
  while (done < n) {
    const std::int64_t more = std::min(done, n - done);
    std::memcpy(to + done, to, static_cast<std::size_t>(more) * sizeof(T));
    done += more;
  }
}

template <class T>
void copy_row(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
              std::int64_t n) {
  if (to_stride != 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  } else if (from_stride == 1) {
    copy_forwards(from, to, static_cast<std::size_t>(n) * sizeof(T));
  } else if (from_stride == 0) {
    fill_row(to, n, *from);
  } else if (from_stride == -1) {  // known to the compiler, which then moves vectors
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
  }
}

// Rows that the source has backwards, or each before the one before, are lost to prefetchers from row to
// row; within longer ones they follow, and copies that the second cache holds need none. In bytes:
constexpr std::size_t kPiece = 1024, kLongest = 32768, kCached = 1 << 20;

bool wants_ahead(const StridedCopy& copy, std::size_t element_size) {
  if (copy.rank() < 2 || static_cast<std::size_t>(copy.num_elements()) * element_size <= kCached)
    return false;
  const StridedCopy::Axis &outer = copy.axis(copy.rank() - 2), &row = copy.axis(copy.rank() - 1);
  const std::size_t bytes = static_cast<std::size_t>(row.extent) * element_size;
  return row.to == 1 && (row.from == -1 || (row.from == 1 && outer.from < 0)) && bytes >= kPiece &&
         bytes <= kLongest;
}

// Such a row, in pieces that each ask for one of the next row, which is `step` elements on. They ask
// upwards: downwards takes twice as long.
template <class T>
void copy_row_ahead(const T* from, std::int64_t from_stride, T* to, std::int64_t n,
                    std::int64_t step) {
  constexpr std::int64_t kCount = kPiece / sizeof(T), kLine = 64 / sizeof(T);
  const T* next = from + step + (from_stride < 0 ? 1 - n : 0);
  for (std::int64_t i = 0; i < n; i += kCount) {
    const std::int64_t end = std::min(n, i + kCount);
    for (std::int64_t j = i; j < end; j += kLine) __builtin_prefetch(next + j);
    copy_row(from + i * from_stride, from_stride, to + i, 1, end - i);
  }
}

// Four by four elements of 32 bits in registers.
void transpose_4x4(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                   std::int64_t to_stride) {
  typedef std::uint32_t Row __attribute__((vector_size(16)));
  Row a, b, c, d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + from_stride, sizeof b);
  std::memcpy(&c, from + 2 * from_stride, sizeof c);
  std::memcpy(&d, from + 3 * from_stride, sizeof d);
  const Row ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Row ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Row cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Row cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7);
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + to_stride, &b, sizeof b);
  std::memcpy(to + 2 * to_stride, &c, sizeof c);
  std::memcpy(to + 3 * to_stride, &d, sizeof d);
}

// A whole square, by way of one without gaps, so that each cache line is written at once.
void transpose_square(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                      std::int64_t to_stride) {
  std::uint32_t square[kSquare * kSquare];
  for (std::int64_t j = 0; j < kSquare; j += 4)
    for (std::int64_t i = 0; i < kSquare; i += 4)
      transpose_4x4(from + i + j * from_stride, from_stride, square + i * kSquare + j, kSquare);
  for (std::int64_t i = 0; i < kSquare; ++i)
    std::memcpy(to + i * to_stride, square + i * kSquare, kSquare * sizeof(*to));
}

// to[i * to_stride + j] = from[i + j * from_stride]
template <class T>
void copy_transposed(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                     std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i0 = 0; i0 < rows; i0 += kSquare)
    for (std::int64_t j0 = 0; j0 < cols; j0 += kSquare) {
      const std::int64_t i1 = std::min(rows, i0 + kSquare), j1 = std::min(cols, j0 + kSquare);
      if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
        if (i1 - i0 == kSquare && j1 - j0 == kSquare) {
          transpose_square(from + i0 + j0 * from_stride, from_stride, to + i0 * to_stride + j0,
                           to_stride);
          continue;
        }
      }
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
  const bool ahead = wants_ahead(*this, sizeof(T));
  std::int64_t index[Shape::kMaxRank] = {};
  while (true) {
    if (across >= 0)
      copy_transposed(from, last.from, to, axes_[across].to, axes_[across].extent, last.extent);
    else if (ahead)
      copy_row_ahead(from, last.from, to, last.extent, axes_[rank_ - 2].from);
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
