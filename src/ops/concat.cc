// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>

#include "device/accelerator.h"
#include "ops/box.h"
#include "ops/launch.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// On one device, where undefined parts stand for zeros.
Tensor joined(const std::vector<Tensor>& parts, const Extents& extents, int axis, Device device,
              DType dtype, const Shape& shape) {
  Tensor y = make_result(device, dtype, shape);
  if (y.bytes() > 0 && !std::ranges::all_of(parts, &Tensor::defined))
    zero_bytes(device, write<void>(y), y.bytes());
  if (device.is_host()) {
    join_parts(parts, extents, axis, y);
    return y;
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); begin += extents[i++]) {
    if (!parts[i].defined()) continue;
    const auto placed = [first = box_begin(shape, axis, begin)](Tensor& to, const Tensor& from) {
      copy_to_box(from, to, first);
    };
    launch("concat", device, writes(y), reads(parts[i]), placed, placed);
  }
  return y;
}

Tensor traced_concat(std::vector<Tensor> parts, const Extents& extents, int axis, DType dtype,
                     const Shape& shape) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].defined()) parts[i] = zeros(shape.with_dim(axis, extents[i]), dtype);
  return traced::concat(parts, axis);
}

// All parts side by side, of which undefined ones stand for zeros; recorded.
Tensor concat_checked(const std::vector<Tensor>& parts, const Extents& extents, int axis,
                      DType dtype, const Shape& shape, SourceLocation at) {
  std::vector<const Tensor*> inputs;
  bool recorded = false;
  for (const Tensor& part : parts) {
    inputs.push_back(&part);
    recorded = recorded || recording({&part});
  }
  const Device device = common_device("concat", inputs, at);
  Tensor y = traced::on(device) ? traced_concat(parts, extents, axis, dtype, shape)
                                : joined(parts, extents, axis, device, dtype, shape);
  if (recorded && is_floating(dtype))
    current_recorder()->record(
        "concat", inputs, {&y, 1}, [extents, axis](std::span<const Tensor> dy, GradientSink& sink) {
          std::int64_t from = 0;
          for (std::size_t i = 0; i < extents.size(); from += extents[i++]) {
            const int input = static_cast<int>(i);
            if (!sink.wants(input)) continue;
            std::vector<std::int64_t> box(dy[0].shape().dims().begin(), dy[0].shape().dims().end());
            box[static_cast<std::size_t>(axis)] = extents[i];
            sink.put(input,
                     [&] { return slice(dy[0], box_begin(dy[0].shape(), axis, from), box); });
          }
        });
  return y;
}

// The parts of x along an axis, not recorded; whole rows without a copy.
std::vector<Tensor> parted(const Tensor& x, const Extents& extents, int axis, SourceLocation at) {
  std::vector<Tensor> parts;
  if (axis == 0 || !x.device().is_host()) {
    std::int64_t begin = 0;
    for (const std::int64_t extent : extents) {
      parts.push_back(part_of("split", x, axis, begin, extent, at));
      begin += extent;
    }
    return parts;
  }
  const Device device = common_device("split", {&x}, at);
  for (const std::int64_t extent : extents)
    parts.push_back(make_result(device, x.dtype(), x.shape().with_dim(axis, extent)));
  part_whole(x, extents, axis, parts);
  return parts;
}

void require_concat(const std::vector<Tensor>& parts, int axis, const char* op, SourceLocation at) {
  for (const Tensor& part : parts) {
    require_same_dtype(op, parts[0], part, at);
    bool fits = part.rank() == parts[0].rank();
    for (int i = 0; i < part.rank() && fits; ++i)
      fits = i == axis || part.dim(i) == parts[0].dim(i);
    require(fits, at, op, "shapes ", parts[0].shape(), " and ", part.shape(),
            " differ in more than axis ", axis);
  }
}

}  // namespace

Tensor concat(const std::vector<Tensor>& parts, int axis, SourceLocation at) {
  require(!parts.empty(), at, "concat", "expected at least one tensor, got none");
  for (const Tensor& part : parts) require_defined("concat", "a part", part, at);
  const int along = checked_axis("concat", axis, parts[0].shape(), at);
  require_concat(parts, along, "concat", at);
  Extents extents;
  std::int64_t total = 0;
  for (const Tensor& part : parts) {
    extents.push_back(part.dim(along));
    require(!__builtin_add_overflow(total, part.dim(along), &total), at, "concat", "axis ", along,
            " of the result is longer than any memory holds");
  }
  const Shape whole = parts[0].shape().with_dim(along, total, at, "concat");
  return concat_checked(parts, extents, along, parts[0].dtype(), whole, at);
}

Tensor stack(const std::vector<Tensor>& parts, int axis, SourceLocation at) {
  require(!parts.empty(), at, "stack", "expected at least one tensor, got none");
  std::vector<Tensor> expanded;
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : parts) {
    require_defined("stack", "a part", part, at);
    const int rank = part.rank() + 1;
    require(axis >= -rank && axis < rank, at, "stack", "axis ", axis, " is out of range for shape ",
            part.shape(), "; expected ", -rank, " to ", rank - 1);
    require_same_dtype("stack", parts[0], part, at);
    inputs.push_back(&part);
    require(part.shape() == parts[0].shape(), at, "stack", "expected tensors of one shape, got ",
            parts[0].shape(), " and ", part.shape());
    expanded.push_back(expand_dims(part, axis, at));
  }
  common_device("stack", inputs, at);
  return concat(expanded, axis, at);
}

std::vector<Tensor> unstack(const Tensor& x, int axis, SourceLocation at) {
  require_defined("unstack", "x", x, at);
  const int along = checked_axis("unstack", axis, x.shape(), at);
  std::vector<Tensor> parts;
  if (x.dim(along) == 0) return parts;
  for (const Tensor& part : split(x, Extents(static_cast<std::size_t>(x.dim(along)), 1), along, at))
    parts.push_back(reshape(part, x.shape().without_axis(along), at));
  return parts;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& extents, int axis,
                          SourceLocation at) {
  require_defined("split", "x", x, at);
  const int along = checked_axis("split", axis, x.shape(), at);
  std::int64_t total = 0;
  for (const std::int64_t extent : extents) {
    require(extent >= 0, at, "split", "expected extents of 0 or more for axis ", axis, " of shape ",
            x.shape(), ", got ", extent);
    // Beyond the axis the sum is wrong already, and may overflow no more.
    total = std::min(total + std::min(extent, x.dim(along) + 1), x.dim(along) + 1);
  }
  require(total == x.dim(along), at, "split", "the parts' extents add up to ", total,
          total > x.dim(along) ? " or more" : "", ", but axis ", axis, " of shape ", x.shape(),
          " has ", x.dim(along));
  std::vector<Tensor> parts = parted(x, extents, along, at);
  if (is_floating(x.dtype()) && recording({&x})) {
    const Tensor* const input = &x;
    current_recorder()->record(
        "split", {&input, 1}, parts,
        [shape = x.shape(), extents, dtype = x.dtype(), along](std::span<const Tensor> dy,
                                                               GradientSink& sink) {
          if (sink.wants(0))
            sink.put(0, [&] {
              return concat_checked({dy.begin(), dy.end()}, extents, along, dtype, shape, {});
            });
        });
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int parts, int axis, SourceLocation at) {
  require_defined("split", "x", x, at);
  const std::int64_t extent = x.dim(checked_axis("split", axis, x.shape(), at));
  require(parts > 0 && extent % parts == 0, at, "split", "axis ", axis, " of shape ", x.shape(),
          " does not divide into ", parts, " equal parts");
  return split(x, Extents(static_cast<std::size_t>(parts), extent / parts), axis, at);
}

}  // namespace lockstep
