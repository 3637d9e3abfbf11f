// SPDX-License-Identifier: Apache-2.0
#include "ops/window_extent.h"

#include <algorithm>

namespace lockstep {
namespace {

// Larger ones are mistakes, and would overflow what is computed from them, here and in oneDNN.
constexpr std::int64_t kMost = 1 << 24;

bool within(std::int64_t least, Size2d size) {
  return size.height >= least && size.width >= least && size.height <= kMost && size.width <= kMost;
}

void slide(WindowExtent& extent, Padding::Kind kind, std::int64_t before, std::int64_t after) {
  if (kind == Padding::Kind::same) {
    extent.out = (extent.in + extent.stride - 1) / extent.stride;
    const std::int64_t total =
        std::max<std::int64_t>(0, (extent.out - 1) * extent.stride + extent.span() - extent.in);
    extent.before = total / 2;
    extent.after = total - extent.before;
    return;
  }
  extent.before = before;
  extent.after = after;
  const std::int64_t room = extent.in + before + after - extent.span();
  extent.out = room < 0 ? 0 : room / extent.stride + 1;
}

}  // namespace

WindowExtents window_extents(const char* op, const Shape& shape, Size2d window, Size2d strides,
                             Size2d dilations, const Padding& padding, SourceLocation at) {
  require(within(1, window) && within(1, strides) && within(1, dilations), at, op,
          "expected windows, strides and dilations of 1 to ", kMost, ", got ", window.height, "x",
          window.width, ", ", strides.height, "x", strides.width, " and ", dilations.height, "x",
          dilations.width, " for images of shape ", shape);
  require(
      within(0, {padding.top(), padding.bottom()}) && within(0, {padding.left(), padding.right()}),
      at, op, "expected padding of 0 to ", kMost, ", got {", padding.top(), ", ", padding.bottom(),
      ", ", padding.left(), ", ", padding.right(), "} for images of shape ", shape);
  WindowExtents extents{
      .height = {shape[1], window.height, strides.height, dilations.height},
      .width = {shape[2], window.width, strides.width, dilations.width},
  };
  slide(extents.height, padding.kind(), padding.top(), padding.bottom());
  slide(extents.width, padding.kind(), padding.left(), padding.right());
  require(extents.height.out > 0 && extents.width.out > 0, at, op, "a window that covers ",
          extents.height.span(), "x", extents.width.span(), " does not fit into images of shape ",
          shape, "; pad them or use a smaller one");
  return extents;
}

}  // namespace lockstep
