// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/device/device.h>

#include "ops/convolution.h"
#include "ops/gemm.h"

// The only door to oneDNN, versions 2.6 and 3. Each function computes what gemm.h and convolution.h
// say and returns true, or returns false without touching the result when the oneDNN linked has no
// kernel for this dtype on this CPU. No extent may be zero. Compiled primitives are kept per
// thread, by extents, dtype and number of threads; the calling thread's intra_op_threads() are
// used.
namespace lockstep::onednn {

bool compute(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
             const void* bias, void* c);

bool convolve(const Convolution& conv, DType dtype, Device device, const void* x, const void* w,
              const void* bias, bool relu, void* y);
bool convolve_input_gradient(const Convolution& conv, DType dtype, Device device, const void* dy,
                             const void* w, void* dx);
bool convolve_weight_gradient(const Convolution& conv, DType dtype, Device device, const void* x,
                              const void* dy, void* dw);

}  // namespace lockstep::onednn
