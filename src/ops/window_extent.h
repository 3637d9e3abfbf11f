// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/window.h>

#include <string>

#include "ops/result.h"

namespace lockstep {

// How a window slides along one axis of an image.
struct WindowExtent {
  std::int64_t in = 1;
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t out = 1;
  std::int64_t before = 0;  // padding
  std::int64_t after = 0;

  std::int64_t span() const { return (window - 1) * dilation + 1; }
};

// Along the axes that there are; others have extents of 1.
struct WindowExtents {
  WindowExtent depth, height, width;
};

// Images of `axes` axes: of one, only the widths count, of two no depths.
struct WindowSteps {
  int axes = 2;
  Size3d window = 1, strides = 1, dilations = 1;
};

// The extents of windows on images of `shape`, [batch, <axes>, channels]. Throws InvalidArgument as
// conv.h and pool.h say.
WindowExtents window_extents(const char* op, const Shape& shape, const WindowSteps& steps,
                             const Padding& padding, SourceLocation at);

// The same for transposed convolutions, of windows whose results are of `shape`: the image's extents
// are `size`, and where that is 0 those that Keras takes, in * stride for padding `same`, for `valid`
// (in - 1) * stride + max(span, stride), otherwise the least. InvalidArgument when windows on such
// images do not give `shape`.
WindowExtents image_extents(const char* op, const Shape& shape, const WindowSteps& steps,
                            const Padding& padding, const Size3d& size, SourceLocation at);

// "3x2": of one, two or three axes.
std::string size_text(const Size3d& size, int axes);

constexpr Size3d as_3d(std::int64_t width) { return {1, 1, width}; }
constexpr Size3d as_3d(Size2d size) { return {1, size.height, size.width}; }
constexpr Size3d as_3d(const Size3d& size) { return size; }

// [batch, <axes>, channels] of given depth, height and width.
Shape image_shape(const char* op, int axes, std::int64_t batch, const Size3d& size,
                  std::int64_t channels, SourceLocation at);

}  // namespace lockstep
