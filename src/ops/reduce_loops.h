// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

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
constexpr std::int64_t kRunBlock = 4096;  // elements of a run between additions in Wide
constexpr std::int64_t kRowBlock = 64;    // rows between additions in Wide
constexpr std::int64_t kTile = 512;       // columns at a time, whose sums stay in the first cache

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
// NaN, once in, stays. In two steps, which compilers vectorise.
struct Larger {
  static constexpr int kOfNothing = 0;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = b > a ? b : a;
    a = b != b ? b : a;
  }
};
struct Smaller {
  static constexpr int kOfNothing = 0;
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = b < a ? b : a;
    a = b != b ? b : a;
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

// One block of a run, n >= kLanes: lane i takes the elements i mod kLanes, then halves meet.
template <class F, class T>
T reduce_lanes(const T* x, std::int64_t n) {
  Lanes<T> lanes;
  lanes.load(x);
  std::int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) lanes.template combine<F>(x + i);
  T lane[kLanes];
  __builtin_memcpy(lane, lanes.vectors, sizeof lane);
  for (int k = 0; i < n; ++i, ++k) F::into(lane[k], x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) F::into(lane[k], lane[k + half]);
  return lane[0];
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

// Columns [0, width) of up to kRowBlock rows: four rows at a time as pairs, the rest singly.
template <class F, class T>
void reduce_row_block(const T* __restrict x, std::int64_t stride, std::int64_t rows,
                      std::int64_t width, T* __restrict y) {
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
  for (std::int64_t j = 0; j < cols; j += kTile) {
    const std::int64_t width = cols - j < kTile ? cols - j : kTile;
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
