// SPDX-License-Identifier: Apache-2.0
#include "ops/dense_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kTile = 512;  // columns summed at a time; their sums stay in the L1 cache

template <class T>
void relu(T* __restrict x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < T(0) ? T(0) : x[i];
}

// Where `y` is null: sums of dy. Else also dz = dy where y > 0.
template <class T, bool masked>
struct Source {
  const T* __restrict dy;
  const T* __restrict y;
  T* __restrict dz;

  T operator()(std::int64_t i) const {
    if constexpr (masked) {
      const T gradient = dy[i];  // read at any rate: a load under a condition stays scalar
      const T value = y[i] > T(0) ? gradient : T(0);
      dz[i] = value;
      return value;
    } else {
      return dy[i];
    }
  }
};

// sums[j] = sum over r < rows of source(first + r * stride + j), for j < count <= kTile. Rows are
// added four at a time, which spares loads of `sums` and halves the rounding errors' depth twice.
template <class T, bool masked>
void sum_tile(Source<T, masked> source, std::int64_t first, std::int64_t rows, std::int64_t stride,
              std::int64_t count, T* __restrict sums) {
  for (std::int64_t j = 0; j < count; ++j) sums[j] = T(0);
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const std::int64_t at = first + r * stride;
    for (std::int64_t j = 0; j < count; ++j)
      sums[j] += (source(at + j) + source(at + stride + j)) +
                 (source(at + 2 * stride + j) + source(at + 3 * stride + j));
  }
  for (; r < rows; ++r) {
    const std::int64_t at = first + r * stride;
    for (std::int64_t j = 0; j < count; ++j) sums[j] += source(at + j);
  }
}

// Narrow matrices are taken as wider ones of several rows in a row, so that the inner loop is long.
template <class T, bool masked>
void sum_columns(Source<T, masked> source, std::int64_t rows, std::int64_t cols, T* sums) {
  T partial[kTile];
  const std::int64_t folded = cols < kTile ? kTile / cols : 1;
  const std::int64_t wide_rows = rows / folded;
  const std::int64_t wide = folded * cols;
  for (std::int64_t c = 0; c < wide; c += kTile) {
    const std::int64_t count = wide - c < kTile ? wide - c : kTile;
    if (folded == 1) {
      sum_tile(source, c, wide_rows, wide, count, sums + c);
      continue;
    }
    sum_tile(source, c, wide_rows, wide, count, partial);
    for (std::int64_t j = 0; j < cols; ++j) sums[j] = T(0);
    for (std::int64_t f = 0; f < folded; ++f)
      for (std::int64_t j = 0; j < cols; ++j) sums[j] += partial[f * cols + j];
  }
  for (std::int64_t r = wide_rows * folded; r < rows; ++r)
    for (std::int64_t j = 0; j < cols; ++j) sums[j] += source(r * cols + j);
}

template <class T>
void column_sums(const T* x, std::int64_t rows, std::int64_t cols, T* sums) {
  sum_columns(Source<T, false>{x, nullptr, nullptr}, rows, cols, sums);
}

template <class T>
void relu_gradient_sums(const T* dy, const T* y, std::int64_t rows, std::int64_t cols, T* dz,
                        T* sums) {
  sum_columns(Source<T, true>{dy, y, dz}, rows, cols, sums);
}

template <class T>
constexpr DenseKernel<T> kernel() {
  return {
      .relu = relu<T>, .column_sums = column_sums<T>, .relu_gradient_sums = relu_gradient_sums<T>};
}

}  // namespace

extern const DenseKernels dense_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
