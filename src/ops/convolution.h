// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/device/device.h>

#include <cstdint>

namespace lockstep {

// The extents of a two-dimensional convolution: x [batch, in_h, in_w, in_c], w [kernel_h, kernel_w,
// in_c / groups, out_c], y [batch, out_h, out_w, out_c]. Tap (i, j) of output (r, s) reads input
// row r * stride_h + i * dilation_h - pad_top and column s * stride_w + j * dilation_w - pad_left;
// what lies outside x counts as zero. Fields are all 64 bits wide, so that the bytes are the value.
struct Convolution {
  std::int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0;
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t groups = 1;

  friend bool operator==(const Convolution&, const Convolution&) = default;
};

namespace cpu {

// The three kernels, on f32, f64, f16 or bf16 (16-bit types accumulate in float and round once). No
// extent is zero. They use intra_op_threads() threads and scratch memory from the pool of `device`.

// y = x * w + bias, then max(y, 0) where `relu`; bias [out_c] may be null.
void convolve(const Convolution& conv, DType dtype, Device device, const void* x, const void* w,
              const void* bias, bool relu, void* y);
// dx of x, given dy of y.
void convolve_input_gradient(const Convolution& conv, DType dtype, Device device, const void* dy,
                             const void* w, void* dx);
// dw of w, given dy of y.
void convolve_weight_gradient(const Convolution& conv, DType dtype, Device device, const void* x,
                              const void* dy, void* dw);

}  // namespace cpu
}  // namespace lockstep
