// SPDX-License-Identifier: Apache-2.0
#include "ops/window_extent.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace lockstep {
namespace {

// Larger ones are mistakes, and would overflow what is computed from them, here and in oneDNN.
constexpr std::int64_t kMost = 1 << 24;

using Extents = std::array<WindowExtent*, 3>;

std::array<std::int64_t, 3> values_of(const Size3d& size) {
  return {size.depth, size.height, size.width};
}

bool within(std::int64_t least, int axes, const Size3d& size) {
  const auto values = values_of(size);
  return std::all_of(values.end() - axes, values.end(),
                     [&](std::int64_t value) { return value >= least && value <= kMost; });
}

std::array<std::int64_t, 6> values_of(const Padding& p) {
  return {p.front(), p.back(), p.top(), p.bottom(), p.left(), p.right()};
}

std::string padding_text(const Padding& padding, int axes) {
  std::ostringstream out;
  const auto values = values_of(padding);
  const char* separator = "{";
  for (auto value = values.end() - 2 * axes; value != values.end(); ++value) {
    out << separator << *value;
    separator = ", ";
  }
  out << '}';
  return std::move(out).str();
}

void check(const char* op, const Shape& shape, const WindowSteps& steps, const Padding& padding,
           SourceLocation at) {
  const auto text = [&](const Size3d& size) { return size_text(size, steps.axes); };
  require(within(1, steps.axes, steps.window) && within(1, steps.axes, steps.strides) &&
              within(1, steps.axes, steps.dilations),
          at, op, "expected windows, strides and dilations of 1 to ", kMost, ", got ",
          text(steps.window), ", ", text(steps.strides), " and ", text(steps.dilations),
          " for images of shape ", shape);
  require(padding.kind() != Padding::Kind::given || padding.axes() == steps.axes, at, op,
          "expected padding for ", steps.axes, " axes, two numbers for each, got ",
          padding_text(padding, std::max(padding.axes(), 1)), " for images of shape ", shape);
  const auto values = values_of(padding);
  const bool ok = std::all_of(values.begin(), values.end(),
                              [](std::int64_t value) { return value >= 0 && value <= kMost; });
  require(ok, at, op, "expected padding of 0 to ", kMost, ", got ",
          padding_text(padding, steps.axes), " for images of shape ", shape);
}

// The axes of an image with their windows, and with padding where it is given; f(extent, axis) for
// each sets the rest.
template <class F>
WindowExtents each_axis(const WindowSteps& steps, const Padding& padding, F&& f) {
  WindowExtents extents;
  const Extents all{&extents.depth, &extents.height, &extents.width};
  const auto window = values_of(steps.window), strides = values_of(steps.strides),
             dilations = values_of(steps.dilations);
  const auto around = values_of(padding);
  for (int axis = 0; axis < steps.axes; ++axis) {
    const auto i = static_cast<std::size_t>(3 - steps.axes) + static_cast<std::size_t>(axis);
    *all[i] = {.window = window[i],
               .stride = strides[i],
               .dilation = dilations[i],
               .before = around[2 * i],
               .after = around[2 * i + 1]};
    f(*all[i], axis);
  }
  return extents;
}

void slide(WindowExtent& extent, Padding::Kind kind) {
  if (kind == Padding::Kind::same) {
    extent.out = (extent.in + extent.stride - 1) / extent.stride;
    const std::int64_t total =
        std::max<std::int64_t>(0, (extent.out - 1) * extent.stride + extent.span() - extent.in);
    extent.before = total / 2;
    extent.after = total - extent.before;
    return;
  }
  const std::int64_t room = extent.in + extent.before + extent.after - extent.span();
  extent.out = room < 0 ? 0 : room / extent.stride + 1;
}

// The image that gives `out`, of several that do the one that Keras takes.
std::int64_t unslid(const WindowExtent& extent, Padding::Kind kind, std::int64_t out) {
  switch (kind) {
    case Padding::Kind::same:
      return out * extent.stride;
    case Padding::Kind::valid:
      return (out - 1) * extent.stride + std::max(extent.span(), extent.stride);
    case Padding::Kind::given:
      break;
  }
  return (out - 1) * extent.stride + extent.span() - extent.before - extent.after;
}

Size3d spans(const WindowExtents& e) { return {e.depth.span(), e.height.span(), e.width.span()}; }

}  // namespace

std::string size_text(const Size3d& size, int axes) {
  const auto values = values_of(size);
  std::string text;
  for (auto value = values.end() - axes; value != values.end(); ++value)
    text += (text.empty() ? "" : "x") + std::to_string(*value);
  return text;
}

Shape image_shape(const char* op, int axes, std::int64_t batch, const Size3d& size,
                  std::int64_t channels, SourceLocation at) {
  const auto values = values_of(size);
  std::array<std::int64_t, 5> dims{batch};
  std::copy(values.end() - axes, values.end(), dims.begin() + 1);
  dims[static_cast<std::size_t>(axes) + 1] = channels;
  return Shape(std::span<const std::int64_t>(dims).first(static_cast<std::size_t>(axes) + 2), at,
               op);
}

WindowExtents window_extents(const char* op, const Shape& shape, const WindowSteps& steps,
                             const Padding& padding, SourceLocation at) {
  check(op, shape, steps, padding, at);
  bool fits = true;
  const WindowExtents extents = each_axis(steps, padding, [&](WindowExtent& extent, int axis) {
    extent.in = shape[axis + 1];
    slide(extent, padding.kind());
    fits = fits && extent.out > 0;
  });
  require(fits, at, op, "a window that covers ", size_text(spans(extents), steps.axes),
          " does not fit into images of shape ", shape, "; pad them or use a smaller one");
  return extents;
}

WindowExtents image_extents(const char* op, const Shape& shape, const WindowSteps& steps,
                            const Padding& padding, const Size3d& size, SourceLocation at) {
  check(op, shape, steps, padding, at);
  const auto sizes = values_of(size);
  bool fits = true;
  const WindowExtents extents = each_axis(steps, padding, [&](WindowExtent& extent, int axis) {
    const std::int64_t out = shape[axis + 1];
    extent.in = unslid(extent, padding.kind(), out);
    const std::int64_t asked =
        sizes[static_cast<std::size_t>(3 - steps.axes) + static_cast<std::size_t>(axis)];
    if (asked != 0) extent.in = asked;
    if (extent.in > 0) slide(extent, padding.kind());
    fits = fits && extent.in > 0 && extent.out == out;
  });
  require(fits, at, op, "images of ",
          size_text({extents.depth.in, extents.height.in, extents.width.in}, steps.axes),
          " do not give ", shape, " under windows of ", size_text(steps.window, steps.axes),
          "; choose another output size or padding");
  return extents;
}

}  // namespace lockstep
