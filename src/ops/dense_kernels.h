// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// What surrounds the matrix product of a dense layer or convolution; matrices are row-major [rows,
// cols] without gaps.
template <class T>
struct DenseKernel {
  // x = max(x, 0); NaN stays NaN.
  void (*relu)(T* x, std::int64_t count);
  // sums[c] = sum over r of x[r, c].
  void (*column_sums)(const T* x, std::int64_t rows, std::int64_t cols, T* sums);
  // dz = dy where y > 0, else 0; sums[c] = sum over r of dz[r, c].
  void (*relu_gradient_sums)(const T* dy, const T* y, std::int64_t rows, std::int64_t cols, T* dz,
                             T* sums);
};

struct DenseKernels {
  DenseKernel<float> f32;
  DenseKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(DenseKernels, dense_kernels);

}  // namespace lockstep
