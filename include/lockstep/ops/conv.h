// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/activation.h>
#include <lockstep/ops/window.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Of a convolution along `axes` axes.
template <int axes>
struct ConvNdOptions {
  SizeNd<axes> strides = 1;
  Padding padding = Padding::valid;
  SizeNd<axes> dilations = 1;  // distance between the taps of a kernel
  std::int64_t groups = 1;     // channels are cut into groups that do not see each other
  Activation activation = Activation::none;
};
using Conv1dOptions = ConvNdOptions<1>;
using Conv2dOptions = ConvNdOptions<2>;
using Conv3dOptions = ConvNdOptions<3>;

// activation(x * w + bias), where * slides the kernels w over the images x (a cross-correlation, as
// TensorFlow's): x [batch, height, width, in], w [kernel height, kernel width, in / groups, out],
// bias [out] or undefined; the result is [batch, out height, out width, out], see Padding. With one
// axis instead: x [batch, width, in], w [kernel width, ..]; with three: x [batch, depth, height,
// width, in], w [kernel depth, kernel height, kernel width, ..]. Floating dtypes, the same for all;
// 16-bit floats are summed in float and rounded once. A batch of zero images gives an empty result.
// Throws InvalidArgument, naming the shapes, for other ranks, channels or dtypes that do not fit,
// groups that do not divide the channels, strides or dilations below 1, padding that is negative or
// for another number of axes, any of these above 2^24, or a kernel that does not fit into the padded
// image.
LOCKSTEP_EXPORT Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const Conv1dOptions& options = {},
                              SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const Conv2dOptions& options = {},
                              SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const Conv3dOptions& options = {},
                              SourceLocation at = SourceLocation::current());

// conv2d of each channel by itself: w [kernel height, kernel width, in, multiplier], the result has
// in * multiplier channels, those of one input channel side by side. options.groups is not looked at.
LOCKSTEP_EXPORT Tensor depthwise_conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                                        const Conv2dOptions& options = {},
                                        SourceLocation at = SourceLocation::current());

// The gradients of the convolution itself, without bias and options.activation, given that of its
// result: with respect to an x of shape `x_shape`, and to a w of shape `w_shape`. Throws
// InvalidArgument as the convolution, and when dy has not the shape of its result.
LOCKSTEP_EXPORT Tensor conv1d_input_gradient(const Tensor& dy, const Tensor& w,
                                             const Shape& x_shape,
                                             const Conv1dOptions& options = {},
                                             SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv1d_weight_gradient(const Tensor& dy, const Tensor& x,
                                              const Shape& w_shape,
                                              const Conv1dOptions& options = {},
                                              SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv2d_input_gradient(const Tensor& dy, const Tensor& w,
                                             const Shape& x_shape,
                                             const Conv2dOptions& options = {},
                                             SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv2d_weight_gradient(const Tensor& dy, const Tensor& x,
                                              const Shape& w_shape,
                                              const Conv2dOptions& options = {},
                                              SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv3d_input_gradient(const Tensor& dy, const Tensor& w,
                                             const Shape& x_shape,
                                             const Conv3dOptions& options = {},
                                             SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv3d_weight_gradient(const Tensor& dy, const Tensor& x,
                                              const Shape& w_shape,
                                              const Conv3dOptions& options = {},
                                              SourceLocation at = SourceLocation::current());

// Options of the convolution whose input gradient is taken. output_size: height and width of the
// result; 0 stands for TensorFlow's choice, in * stride with padding `same`, (in - 1) * stride +
// max(span, stride) with `valid`, and the least that fits with given padding.
template <int axes>
struct ConvNdTransposeOptions {
  SizeNd<axes> strides = 1;
  Padding padding = Padding::valid;
  SizeNd<axes> dilations = 1;
  std::int64_t groups = 1;
  SizeNd<axes> output_size = 0;
  Activation activation = Activation::none;
};
using Conv1dTransposeOptions = ConvNdTransposeOptions<1>;
using Conv2dTransposeOptions = ConvNdTransposeOptions<2>;
using Conv3dTransposeOptions = ConvNdTransposeOptions<3>;

// The transposed convolution, activation(input gradient + bias): as TensorFlow's, x [batch, height,
// width, in], w [kernel height, kernel width, out / groups, in], bias [out] or undefined; one and
// three axes as above. Throws InvalidArgument as the convolution, and for an output size of which
// the convolution does not give the extents of x.
LOCKSTEP_EXPORT Tensor conv1d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                                        const Conv1dTransposeOptions& options = {},
                                        SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv2d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                                        const Conv2dTransposeOptions& options = {},
                                        SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor conv3d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                                        const Conv3dTransposeOptions& options = {},
                                        SourceLocation at = SourceLocation::current());

}  // namespace lockstep
