// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Tensors are [outer, n, inner] and the function runs along n; none of the extents is zero.
struct SoftmaxExtents {
  std::int64_t outer, n, inner;
};

template <class T>
struct SoftmaxKernel {
  void (*softmax)(const SoftmaxExtents& extents, const T* x, T* y);
  void (*log_softmax)(const SoftmaxExtents& extents, const T* x, T* y);
  // dx, given dy and the result y: y (dy - sum(dy y)), and dy - exp(y) sum(dy).
  void (*softmax_gradient)(const SoftmaxExtents& extents, const T* dy, const T* y, T* dx);
  void (*log_softmax_gradient)(const SoftmaxExtents& extents, const T* dy, const T* y, T* dx);

  // Of each of `rows` rows of n: the largest element and log(sum(exp(x - max))); where `y` is not
  // null, also y = exp(x - max) and scale = 1 / sum(y), so that y scale is the softmax.
  void (*log_sums)(const T* x, std::int64_t rows, std::int64_t n, T* max, T* log_sum, T* y,
                   T* scale);
  // loss[r] = sum over i of labels[r, i] (log_sum[r] + max[r] - x[r, i]).
  void (*cross_entropy)(const T* labels, const T* x, const T* max, const T* log_sum,
                        std::int64_t rows, std::int64_t n, T* loss);
  // dx[r, i] = d[r] (y[r, i] scale[r] sum(labels[r]) - labels[r, i]); where `labels` is null,
  // d[r] y[r, i] scale[r].
  void (*cross_entropy_gradient)(const T* d, const T* y, const T* scale, const T* labels,
                                 std::int64_t rows, std::int64_t n, T* dx);
};

struct SoftmaxKernels {
  SoftmaxKernel<float> f32;
  SoftmaxKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(SoftmaxKernels, softmax_kernels);

}  // namespace lockstep
