// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/convolution.h"
#include "ops/isa.h"

namespace lockstep {

// Convolutions whose groups are single channels, in and out: w [<axes>, 1, channels]. What the three
// kernels of convolution.h compute, where oneDNN has none; no extent is zero.
template <class T>
struct DepthwiseKernel {
  void (*convolve)(const Convolution& conv, const T* x, const T* w, const T* bias, bool relu, T* y);
  void (*input_gradient)(const Convolution& conv, const T* dy, const T* w, T* dx);
  void (*weight_gradient)(const Convolution& conv, const T* x, const T* dy, T* dw);
};

struct DepthwiseKernels {
  DepthwiseKernel<float> f32;
  DepthwiseKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(DepthwiseKernels, depthwise_kernels);

}  // namespace lockstep
