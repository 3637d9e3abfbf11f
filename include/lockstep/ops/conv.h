// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/activation.h>
#include <lockstep/ops/window.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

struct Conv2dOptions {
  Size2d strides = 1;
  Padding padding = Padding::valid;
  Size2d dilations = 1;     // distance between the taps of a kernel
  std::int64_t groups = 1;  // channels are cut into groups that do not see each other
  Activation activation = Activation::none;
};

// activation(x * w + bias), where * slides the kernels w over the images x (a cross-correlation, as
// TensorFlow's): x [batch, height, width, in], w [kernel height, kernel width, in / groups, out],
// bias [out] or undefined; the result is [batch, out height, out width, out], see Padding. Floating
// dtypes, the same for all; 16-bit floats are summed in float and rounded once. A batch of zero
// images gives an empty result. Throws InvalidArgument, naming the shapes, for other ranks,
// channels or dtypes that do not fit, groups that do not divide the channels, strides or dilations
// below 1, negative padding, any of these above 2^24, or a kernel that does not fit into the padded
// image.
LOCKSTEP_EXPORT Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const Conv2dOptions& options = {},
                              SourceLocation at = SourceLocation::current());

// The gradients of the convolution itself, without bias and options.activation, given that of its
// result: with respect to an x of shape `x_shape`, and to a w of shape `w_shape`. The first is also
// known as transposed convolution. Throws InvalidArgument as conv2d, and when dy has not the shape
// of its result.
LOCKSTEP_EXPORT Tensor conv2d_input_gradient(const Tensor& dy, const Tensor& w,
                                             const Shape& x_shape,
                                             const Conv2dOptions& options = {},
                                             SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv2d_weight_gradient(const Tensor& dy, const Tensor& x,
                                              const Shape& w_shape,
                                              const Conv2dOptions& options = {},
                                              SourceLocation at = SourceLocation::current());

}  // namespace lockstep
