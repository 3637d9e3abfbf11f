// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/window.h>

#include "ops/result.h"

namespace lockstep {

// How a window slides along the height or width of an image.
struct WindowExtent {
  std::int64_t in = 0;
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t out = 0;
  std::int64_t before = 0;  // padding
  std::int64_t after = 0;

  std::int64_t span() const { return (window - 1) * dilation + 1; }
};

struct WindowExtents {
  WindowExtent height, width;
};

// The extents of windows on images of `shape`, [batch, height, width, channels]. Throws
// InvalidArgument as conv.h and pool.h say.
WindowExtents window_extents(const char* op, const Shape& shape, Size2d window, Size2d strides,
                             Size2d dilations, const Padding& padding, SourceLocation at);

}  // namespace lockstep
