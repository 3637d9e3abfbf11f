// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/window.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

struct Pool2dOptions {
  Size2d window = 2;
  Size2d strides = 2;
  Padding padding = Padding::valid;
};

// The maximum or the mean of each window of the images x [batch, height, width, channels], per
// channel: [batch, out height, out width, channels], see Padding. What padding adds takes no part:
// the mean is over the window's pixels inside the image. The gradient of a maximum goes to the
// first of equal pixels in row-major order; NaN counts as larger than all. Floating dtypes. A batch
// of zero images gives an empty result. Throws InvalidArgument, naming the shape, for another rank,
// windows or strides below 1, negative padding or one that some window lies in wholly, any of these
// above 2^24, or a window that does not fit into the padded image.
LOCKSTEP_EXPORT Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {},
                                  SourceLocation at = SourceLocation::current());

}  // namespace lockstep
