// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/window.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Of a pooling along `axes` axes.
template <int axes>
struct PoolNdOptions {
  SizeNd<axes> window = 2;
  SizeNd<axes> strides = 2;
  Padding padding = Padding::valid;
};
using Pool1dOptions = PoolNdOptions<1>;
using Pool2dOptions = PoolNdOptions<2>;
using Pool3dOptions = PoolNdOptions<3>;

// The maximum or the mean of each window of the images x [batch, height, width, channels], per
// channel: [batch, out height, out width, channels], see Padding. With one axis instead, x is [batch,
// width, channels], with three [batch, depth, height, width, channels]. What padding adds takes no
// part: the mean is over the window's pixels inside the image. The gradient of a maximum goes to the
// first of equal pixels in row-major order; NaN counts as larger than all. Floating dtypes. A batch
// of zero images gives an empty result. Throws InvalidArgument, naming the shape, for another rank,
// windows or strides below 1, padding that is negative, for another number of axes or one that some
// window lies in wholly, any of these above 2^24, or a window that does not fit into the padded image.
LOCKSTEP_EXPORT Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());

struct GlobalPoolOptions {
  bool keep_dims = false;  // [batch, 1, .., channels] instead of [batch, channels]
};

// The maximum or the mean over all pixels of images x [batch, .., channels] of one axis or more: max()
// and mean() over the axes between, whose gradients they have. Throws InvalidArgument, naming the
// shape, for a rank below 3 or an extent of zero but for the batch, and for dtypes that are not
// floating.
LOCKSTEP_EXPORT Tensor global_max_pool(const Tensor& x, const GlobalPoolOptions& options = {},
                                       SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor global_avg_pool(const Tensor& x, const GlobalPoolOptions& options = {},
                                       SourceLocation at = SourceLocation::current());

}  // namespace lockstep
