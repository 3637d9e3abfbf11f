// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce_cpu.h"

#include <lockstep/device/buffer.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/half_kernels.h"
#include "ops/reduce_kernels.h"
#include "tensor/visit_dtype.h"

namespace lockstep {

namespace cpu {
namespace {

const ReduceKernels& kernels_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return f64_reduce();
    case DType::i32:
      return i32_reduce();
    case DType::i64:
      return i64_reduce();
    case DType::u8:
    case DType::boolean:
      return u8_reduce();
    default:
      return f32_reduce();
  }
}

const ReduceKernels::Pair& kernel_of(Reduction op, DType dtype) {
  const ReduceKernels& kernels = kernels_of(dtype);
  switch (op) {
    case Reduction::sum:
      return kernels.sum;
    case Reduction::prod:
      return kernels.prod;
    case Reduction::max:
      return kernels.max;
    case Reduction::min:
      break;
  }
  return kernels.min;
}

// Adjacent axes that are reduced together, or kept together, as one.
struct Group {
  std::int64_t extent;
  bool reduced;
};

int group_axes(const Shape& shape, const bool (&reduced)[Shape::kMaxRank],
               Group (&groups)[Shape::kMaxRank]) {
  int count = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (count > 0 && groups[count - 1].reduced == reduced[axis])
      groups[count - 1].extent *= shape[axis];
    else
      groups[count++] = {shape[axis], reduced[axis]};
  }
  return count;
}

void reduce_middle(const ReduceKernels::Pair& kernel, std::size_t size, const void* x, void* y,
                   std::int64_t outer, std::int64_t n, std::int64_t inner) {
  if (inner == 1) return kernel.runs(x, y, outer, n);
  for (std::int64_t i = 0; i < outer; ++i)
    kernel.rows(static_cast<const std::byte*>(x) + i * n * inner * static_cast<std::int64_t>(size),
                static_cast<std::byte*>(y) + i * inner * static_cast<std::int64_t>(size), n, inner);
}

// One pass per reduced group, the innermost first; all passes but the last write to scratch memory.
void reduce_groups(Reduction op, DType dtype, const void* x, void* y, const Shape& shape,
                   const bool (&reduced)[Shape::kMaxRank]) {
  Group groups[Shape::kMaxRank];
  const int count = group_axes(shape, reduced, groups);
  int passes = 0;
  std::int64_t total = 1;
  for (int i = 0; i < count; ++i) {
    passes += groups[i].reduced;
    total *= groups[i].extent;
  }
  if (passes == 0) {
    if (total) std::memcpy(y, x, static_cast<std::size_t>(total) * size_of(dtype));
    return;
  }
  Buffer scratch;
  std::int64_t inner = 1;
  for (int i = count - 1; i >= 0; --i) {
    const std::int64_t extent = groups[i].extent;
    std::int64_t outer = 1;
    for (int k = 0; k < i; ++k) outer *= groups[k].extent;
    if (!groups[i].reduced) {
      inner *= extent;
      continue;
    }
    Buffer next;
    if (--passes > 0)
      next = Buffer::allocate(Device{}, static_cast<std::size_t>(outer * inner) * size_of(dtype));
    reduce_middle(kernel_of(op, dtype), size_of(dtype), x, next ? next.data() : y, outer, extent,
                  inner);
    scratch = std::move(next);
    x = scratch.data();
  }
}

void divide(DType dtype, void* y, std::int64_t n, std::int64_t divisor) {
  if (divisor == 1) return;
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(y)[i] /= static_cast<T>(divisor);
  });
}

// The first place in a row of the extreme value, which a kernel has found.
template <class T>
std::int64_t place_of(T extreme, const T* row, std::int64_t n) {
  std::int64_t i = 0;
  if (extreme != extreme)
    while (i < n - 1 && row[i] == row[i]) ++i;
  else
    while (i < n - 1 && row[i] != extreme) ++i;
  return i;
}

constexpr std::int64_t kTile = 512;  // columns at a time, which stay in the first cache

// Columns [0, width <= kTile) of rows that are `inner` apart, a block of rows at a time, in which
// places fit into as many bits as elements.
template <bool largest, class T>
void arg_extreme_of_tile(const T* __restrict x, std::int64_t* __restrict y, std::int64_t n,
                         std::int64_t inner, std::int64_t width) {
  constexpr std::int64_t kNone = -1, kRows = 127;
  using Place = std::make_signed_t<
      std::conditional_t<sizeof(T) == 1, std::uint8_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  T extreme[kTile];
  Place place[kTile];
  for (std::int64_t i = 0; i < width; ++i) extreme[i] = x[i], y[i] = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRows) {
    const std::int64_t rows = std::min(kRows, n - begin);
    for (std::int64_t i = 0; i < width; ++i) place[i] = Place(kNone);
    for (std::int64_t j = 0; j < rows; ++j) {
      const T* __restrict row = x + (begin + j) * inner;
      for (std::int64_t i = 0; i < width; ++i) {
        const T value = row[i], old = extreme[i];
        // Once a NaN leads, nothing exceeds it.
        const bool takes =
            (largest ? value > old : value < old) | ((value != value) & (old == old));
        extreme[i] = takes ? value : old;
        place[i] = takes ? static_cast<Place>(j) : place[i];
      }
    }
    for (std::int64_t i = 0; i < width; ++i)
      if (place[i] != Place(kNone)) y[i] = begin + place[i];
  }
}

template <bool largest, class T>
void arg_extreme_of_columns(const T* x, std::int64_t* y, std::int64_t n, std::int64_t inner) {
  for (std::int64_t i = 0; i < inner; i += kTile)
    arg_extreme_of_tile<largest>(x + i, y + i, n, inner, std::min(kTile, inner - i));
}

template <class T>
void arg_extreme_of(bool largest, const ReduceKernels::Pair& kernel, const T* x, std::int64_t* y,
                    std::int64_t outer, std::int64_t n, std::int64_t inner) {
  for (std::int64_t o = 0; o < outer; ++o, x += n * inner, y += inner) {
    if (inner == 1) {
      T extreme;
      kernel.runs(x, &extreme, 1, n);
      *y = place_of(extreme, x, n);
    } else if (largest) {
      arg_extreme_of_columns<true>(x, y, n, inner);
    } else {
      arg_extreme_of_columns<false>(x, y, n, inner);
    }
  }
}

Buffer widened(DType dtype, const void* x, std::int64_t n) {
  Buffer wide = Buffer::allocate(Device{}, static_cast<std::size_t>(n) * sizeof(float));
  half_kernels().widen(dtype, x, static_cast<float*>(wide.data()), n);
  return wide;
}

}  // namespace

void reduce(Reduction op, DType dtype, const void* x, void* y, const Shape& shape,
            const bool (&reduced)[Shape::kMaxRank], std::int64_t divisor) {
  std::int64_t results = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) results *= reduced[axis] ? 1 : shape[axis];
  if (!is_half(dtype)) {
    reduce_groups(op, dtype, x, y, shape, reduced);
    return divide(dtype, y, results, divisor);
  }
  const Buffer wide_x = widened(dtype, x, shape.num_elements());
  const Buffer wide_y =
      Buffer::allocate(Device{}, static_cast<std::size_t>(results) * sizeof(float));
  reduce_groups(op, DType::f32, wide_x.data(), wide_y.data(), shape, reduced);
  divide(DType::f32, wide_y.data(), results, divisor);
  half_kernels().narrow(dtype, static_cast<const float*>(wide_y.data()), y, results);
}

void arg_extreme(bool largest, DType dtype, const void* x, std::int64_t* y, std::int64_t outer,
                 std::int64_t n, std::int64_t inner) {
  if (outer * inner == 0) return;
  if (is_half(dtype)) {
    const Buffer wide = widened(dtype, x, outer * n * inner);
    return arg_extreme(largest, DType::f32, wide.data(), y, outer, n, inner);
  }
  const ReduceKernels::Pair& kernel = kernel_of(largest ? Reduction::max : Reduction::min, dtype);
  // Booleans are bytes of 0 and 1.
  visit_dtype(dtype == DType::boolean ? DType::u8 : dtype, [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      arg_extreme_of(largest, kernel, static_cast<const T*>(x), y, outer, n, inner);
  });
}

}  // namespace cpu
}  // namespace lockstep
