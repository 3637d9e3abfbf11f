// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Windows on images x [batch, in_h, in_w, channels], y [batch, out_h, out_w, channels]. Tap (i, j)
// of window (r, s) is pixel (r * stride_h + i - pad_top, s * stride_w + j - pad_left), where that
// is inside; one tap at least is. Taps are numbered i * window_w + j.
struct Pool {
  std::int64_t batch, in_h, in_w, out_h, out_w, channels;
  std::int64_t window_h, window_w, stride_h, stride_w, pad_top, pad_left;
};

// Index holds the number of a tap.
template <class T, class Index>
struct MaxPoolKernel {
  // `taps`, of y's shape, may be null.
  void (*max)(const Pool& pool, const T* x, T* y, Index* taps);
  // dx = dy at each window's tap, summed, else 0; and y = x at each window's tap.
  void (*scatter)(const Pool& pool, const T* dy, const Index* taps, T* dx);
  void (*gather)(const Pool& pool, const T* x, const Index* taps, T* y);
};

template <class T>
struct PoolKernel {
  MaxPoolKernel<T, std::uint8_t> small;  // windows of up to 256 taps
  MaxPoolKernel<T, std::int32_t> large;
  void (*mean)(const Pool& pool, const T* x, T* y);
  void (*mean_gradient)(const Pool& pool, const T* dy, T* dx);
};

struct PoolKernels {
  PoolKernel<float> f32;
  PoolKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(PoolKernels, pool_kernels);

}  // namespace lockstep
