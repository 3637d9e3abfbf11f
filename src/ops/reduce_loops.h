// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ops/reduce_kernels.h"

// The loops of reductions, instantiated by reduce_isa.cc. Anonymous, as its includers are compiled for
// different CPUs.
//
// The order of additions is part of the contract (reduce.h), so vectors are spelled out: kLanes
// accumulators whatever the width of a register, and within one column of "rows" always the same
// tree.
namespace lockstep {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = 64;
constexpr std::int64_t kRunBlock = 4096;   // elements of a run between additions in Wide
constexpr std::int64_t kRowBlock = 64;     // rows between additions in Wide
constexpr std::int64_t kTile = 512;        // columns at a time, whose sums stay in the first cache
constexpr std::int64_t kFewColumns = 256;  // up to these, kLanes at a time: in registers

// What block sums are added in.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, T>;

// kOfNothing: the result where there are no elements.
struct Plus {
  static constexpr int kOfNothing = 0;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = a + b;
  }
};
struct Times {
  static constexpr int kOfNothing = 1;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = a * b;
  }
};
// Where b is NaN, a becomes NaN.
template <class V>
[[gnu::always_inline]] inline void take_nan(V& a, const V& b) {
  if constexpr (std::is_arithmetic_v<V>) {
    a = b != b ? b : a;
  } else {
    using T = std::remove_cvref_t<decltype(a[0])>;
    // Not b, or compilers make one condition of this and the comparison before, which takes longer.
    if constexpr (std::is_floating_point_v<T>)
      a = b != b ? V{} + static_cast<T>(__builtin_nanf("")) : a;
  }
}
// NaN, once in, stays.
struct Larger {
  static constexpr int kOfNothing = 0;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = b > a ? b : a;
    take_nan(a, b);
  }
};
struct Smaller {
  static constexpr int kOfNothing = 0;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = b < a ? b : a;
    take_nan(a, b);
  }
};

// kLanes elements in registers.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kVectors = kLanes / kWidth;
  Vector vectors[kVectors];

  [[gnu::always_inline]] void load(const T* x) { __builtin_memcpy(vectors, x, sizeof vectors); }

  template <class F>
  [[gnu::always_inline]] void combine(const T* x) {
    for (int i = 0; i < kVectors; ++i) {
      Vector next;
      __builtin_memcpy(&next, x + i * kWidth, sizeof next);
      F::into(vectors[i], next);
    }
  }
};

// v with its elements moved by `by` places, round.
template <int by, class V, std::size_t... i>
[[gnu::always_inline]] inline void rotate(V& v, std::index_sequence<i...>) {
  v = __builtin_shufflevector(v, v, ((i + by) % sizeof...(i))...);
}

// F over all elements of a vector: halves meet.
template <class F, class T, int half = Lanes<T>::kWidth / 2>
[[gnu::always_inline]] inline T across(typename Lanes<T>::Vector v) {
  if constexpr (half == 0) {
    return v[0];
  } else {
    auto other = v;
    rotate<half>(other, std::make_index_sequence<Lanes<T>::kWidth>());
    F::into(v, other);
    return across<F, T, half / 2>(v);
  }
}

// F over all lanes: halves meet.
template <class F, class T>
[[gnu::always_inline]] inline T across(Lanes<T>& lanes) {
  for (int half = Lanes<T>::kVectors / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) F::into(lanes.vectors[k], lanes.vectors[k + half]);
  return across<F, T>(lanes.vectors[0]);
}

// One block of a run, n >= kLanes: lane i takes the elements i mod kLanes, then halves meet.
template <class F, class T>
T reduce_lanes(const T* x, std::int64_t n) {
  Lanes<T> lanes;
  lanes.load(x);
  std::int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) lanes.template combine<F>(x + i);
  if (i < n) {
    T lane[kLanes];
    __builtin_memcpy(lane, lanes.vectors, sizeof lane);
    for (int k = 0; i < n; ++i, ++k) F::into(lane[k], x[i]);
    lanes.load(lane);
  }
  return across<F>(lanes);
}

template <class F, class T>
T reduce_block(const T* x, std::int64_t n) {
  if (n >= kLanes) return reduce_lanes<F>(x, n);
  T result = x[0];
  for (std::int64_t i = 1; i < n; ++i) F::into(result, x[i]);
  return result;
}

template <class F, class T>
void reduce_runs(const void* x, void* y, std::int64_t outer, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for (std::int64_t run = 0; run < outer; ++run, from += n) {
    Wide<T> result =
        n == 0 ? T(F::kOfNothing) : reduce_block<F>(from, n < kRunBlock ? n : kRunBlock);
    for (std::int64_t i = kRunBlock; i < n; i += kRunBlock) {
      const Wide<T> block = reduce_block<F>(from + i, n - i < kRunBlock ? n - i : kRunBlock);
      F::into(result, block);
    }
    to[run] = static_cast<T>(result);
  }
}

// kLanes columns of up to kRowBlock rows: four rows at a time as pairs, the rest singly.
template <class F, class T>
void reduce_row_lanes(const T* x, std::int64_t stride, std::int64_t rows, T* y) {
  using Vector = typename Lanes<T>::Vector;
  Lanes<T> sum;
  sum.load(x);
  std::int64_t row = 1;
  for (; row + 4 <= rows; row += 4)
    for (int k = 0; k < Lanes<T>::kVectors; ++k) {
      Vector r[4];
      for (int i = 0; i < 4; ++i)
        __builtin_memcpy(&r[i], x + (row + i) * stride + k * Lanes<T>::kWidth, sizeof r[i]);
      F::into(r[0], r[1]);
      F::into(r[2], r[3]);
      F::into(r[0], r[2]);
      F::into(sum.vectors[k], r[0]);
    }
  for (; row < rows; ++row) sum.template combine<F>(x + row * stride);
  __builtin_memcpy(y, sum.vectors, sizeof sum.vectors);
}

// The same for columns [0, width).
template <class F, class T>
void reduce_row_block(const T* __restrict x, std::int64_t stride, std::int64_t rows,
                      std::int64_t width, T* __restrict y) {
  if (width == kLanes) return reduce_row_lanes<F>(x, stride, rows, y);
  for (std::int64_t j = 0; j < width; ++j) y[j] = x[j];
  std::int64_t row = 1;
  for (; row + 4 <= rows; row += 4) {
    const T* __restrict r = x + row * stride;
    for (std::int64_t j = 0; j < width; ++j) {
      T a = r[j], b = r[j + 2 * stride], sum = y[j];
      F::into(a, r[j + stride]);
      F::into(b, r[j + 3 * stride]);
      F::into(a, b);
      F::into(sum, a);
      y[j] = sum;
    }
  }
  for (; row < rows; ++row)
    for (std::int64_t j = 0; j < width; ++j) F::into(y[j], x[row * stride + j]);
}

template <class F, class T>
void reduce_tile(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* y) {
  T block[kTile];
  Wide<T> result[kTile];
  for (std::int64_t row = 0; row < rows; row += kRowBlock) {
    const std::int64_t count = rows - row < kRowBlock ? rows - row : kRowBlock;
    reduce_row_block<F>(x + row * stride, stride, count, width, block);
    if (row == 0) {
      for (std::int64_t j = 0; j < width; ++j) result[j] = block[j];
    } else {
      for (std::int64_t j = 0; j < width; ++j) {
        const Wide<T> wide = block[j];
        F::into(result[j], wide);
      }
    }
  }
  for (std::int64_t j = 0; j < width; ++j)
    y[j] = rows == 0 ? T(F::kOfNothing) : static_cast<T>(result[j]);
}

template <class F, class T>
void reduce_rows(const void* x, void* y, std::int64_t rows, std::int64_t cols) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  const std::int64_t tile = cols <= kFewColumns ? kLanes : kTile;
  for (std::int64_t j = 0; j < cols; j += tile) {
    const std::int64_t width = cols - j < tile ? cols - j : tile;
    reduce_tile<F>(from + j, rows, cols, width, to + j);
  }
}

template <class F, class T>
constexpr ReduceKernels::Pair reduce_pair() {
  return {reduce_runs<F, T>, reduce_rows<F, T>};
}

// Integers are added and multiplied as unsigned, which wraps around.
template <class T, class Summed = T>
constexpr ReduceKernels reduce_kernels_of() {
  return {.sum = reduce_pair<Plus, Summed>(),
          .prod = reduce_pair<Times, Summed>(),
          .max = reduce_pair<Larger, T>(),
          .min = reduce_pair<Smaller, T>()};
}

}  // namespace
}  // namespace lockstep
