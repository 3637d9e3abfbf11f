// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Rows [rows, n] that are normalised each by itself; `centred`: their mean is subtracted first. No
// extent is zero. float32 results have the same bits under every instruction set.
struct RowNorm {
  std::int64_t rows, n;
  double epsilon;
  bool centred;
};

template <class T>
struct RowNormKernel {
  // y = (x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset [n] may be null.
  // Writes mean, unless not centred, and variance [rows].
  void (*normalize)(const RowNorm& norm, const T* x, const T* scale, const T* offset, T* y, T* mean,
                    T* variance);
  // dx, dscale and doffset, each of which may be null. `scratch`: row_norm_scratch_bytes(n).
  void (*gradient)(const RowNorm& norm, const T* dy, const T* x, const T* scale, const T* mean,
                   const T* variance, T* dx, T* dscale, T* doffset, void* scratch);
};

// Columns of matrices [rows, cols] without gaps; nothing is null, no extent is zero. Sums are of a
// few thousand elements at a time, which are added in double.
template <class T>
struct ColumnNormKernel {
  // The mean of each column, and the sum of (x - mean)^2.
  void (*moments)(const T* x, std::int64_t rows, std::int64_t cols, double* mean, double* squares);
  // y = (x - shift) a + b, by column.
  void (*affine)(const T* x, std::int64_t rows, std::int64_t cols, const T* shift, const T* a,
                 const T* b, T* y);
  // The sums of dy and of dy (x - shift).
  void (*sums)(const T* dy, const T* x, std::int64_t rows, std::int64_t cols, const T* shift,
               double* of_dy, double* of_products);
  // dx = dy a + (x - shift) b + c.
  void (*gradient)(const T* dy, const T* x, std::int64_t rows, std::int64_t cols, const T* shift,
                   const T* a, const T* b, const T* c, T* dx);
};

struct RowNormKernels {
  RowNormKernel<float> f32;
  RowNormKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(RowNormKernels, row_norm_kernels);

struct ColumnNormKernels {
  ColumnNormKernel<float> f32;
  ColumnNormKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(ColumnNormKernels, column_norm_kernels);

constexpr std::size_t row_norm_scratch_bytes(std::int64_t n) {
  return static_cast<std::size_t>(n) * 4 * sizeof(double);
}

}  // namespace lockstep
