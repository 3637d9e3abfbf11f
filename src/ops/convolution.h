// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/device/device.h>

#include <cstdint>

#include "ops/functor.h"

namespace lockstep {

// The extents of a convolution: x [batch, in_d, in_h, in_w, in_c], w [kernel_d, kernel_h, kernel_w,
// in_c / groups, out_c], y [batch, out_d, out_h, out_w, out_c]. Tap (i, j) of output (r, s) reads
// input row r * stride_h + i * dilation_h - pad_top and column s * stride_w + j * dilation_w -
// pad_left, and so along the depth; what lies outside x counts as zero. Tensors have the last `axes`
// of depth, height and width; the others have extent 1. Fields are all 64 bits wide, so that the
// bytes are the value.
struct Convolution {
  std::int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0;
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t groups = 1;
  std::int64_t axes = 2;
  std::int64_t in_d = 1, out_d = 1, kernel_d = 1;
  std::int64_t stride_d = 1, dilation_d = 1, pad_front = 0, pad_back = 0;

  LOCKSTEP_HD std::int64_t in_pixels() const { return in_d * in_h * in_w; }
  LOCKSTEP_HD std::int64_t out_pixels() const { return out_d * out_h * out_w; }
  LOCKSTEP_HD std::int64_t taps() const { return kernel_d * kernel_h * kernel_w; }
  friend bool operator==(const Convolution&, const Convolution&) = default;
};

// The ops' names.
struct ConvolutionNames {
  const char *forward, *input_gradient, *weight_gradient;
};
inline const ConvolutionNames& names_of(const Convolution& conv) {
  static constexpr ConvolutionNames kNames[] = {
      {"conv1d", "conv1d_input_gradient", "conv1d_weight_gradient"},
      {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"},
      {"conv3d", "conv3d_input_gradient", "conv3d_weight_gradient"}};
  return kNames[conv.axes - 1];
}

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
