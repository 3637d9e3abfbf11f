// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include "device/accelerator.h"
#include "ops/launch.h"
#include "ops/strided_copy.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

using Extents = std::vector<std::int64_t>;

// Copies all of the smaller of two tensors to, or from, a box of the larger one that starts at
// `begin`: on the device of both.
void copy_box(const Tensor& from, Tensor& to, const Extents& begin, bool box_is_in_target) {
  const Shape& box = box_is_in_target ? from.shape() : to.shape();
  const Strides from_strides(from.shape()), to_strides(to.shape());
  const Strides& outer = box_is_in_target ? to_strides : from_strides;
  StridedCopy copy;
  std::int64_t offset = 0;
  for (int axis = 0; axis < box.rank(); ++axis) {
    copy.add_axis(box[axis], from_strides[axis], to_strides[axis]);
    offset += begin[static_cast<std::size_t>(axis)] * outer[axis];
  }
  if (box.num_elements() == 0) return;
  const auto size = size_of(from.dtype());
  const std::size_t bytes = static_cast<std::size_t>(offset) * size;
  const auto* const source =
      static_cast<const std::byte*>(from.raw_data()) + (box_is_in_target ? 0 : bytes);
  std::byte* const target = write<std::byte>(to) + (box_is_in_target ? bytes : 0);
  run_strided(copy, size, source, target, to.device());
}

Extents box_begin(const Shape& shape, int axis, std::int64_t begin) {
  Extents result(static_cast<std::size_t>(shape.rank()));
  result[static_cast<std::size_t>(axis)] = begin;
  return result;
}

Tensor joined(const std::vector<Tensor>& parts, int axis, Device device, const Shape& shape) {
  Tensor y = make_result(device, parts[0].dtype(), shape);
  std::int64_t begin = 0;
  for (const Tensor& part : parts) {
    const auto placed = [first = box_begin(shape, axis, begin)](Tensor& to, const Tensor& from) {
      copy_box(from, to, first, true);
    };
    launch("concat", device, writes(y), reads(part), placed, placed);
    begin += part.dim(axis);
  }
  return y;
}

// The part [begin, begin + extent) of x along an axis; whole rows without a copy.
Tensor part_of(const char* op, const Tensor& x, int axis, std::int64_t begin, std::int64_t extent,
               SourceLocation at) {
  const Shape shape = x.shape().with_dim(axis, extent);
  if (traced::on(x.device()))
    return traced::slice(x, box_begin(x.shape(), axis, begin),
                         Extents(shape.dims().begin(), shape.dims().end()));
  if (axis == 0) {
    const std::size_t row = x.dim(0) == 0 ? 0 : x.bytes() / static_cast<std::size_t>(x.dim(0));
    return Tensor(x.buffer().slice(static_cast<std::size_t>(begin) * row,
                                   static_cast<std::size_t>(extent) * row),
                  x.dtype(), shape);
  }
  const Device device = common_device(op, {&x}, at);
  Tensor y = make_result(device, x.dtype(), shape);
  const auto copied = [first = box_begin(shape, axis, begin)](Tensor& to, const Tensor& from) {
    copy_box(from, to, first, false);
  };
  launch(op, device, writes(y), reads(x), copied, copied);
  return y;
}

// A gradient per part; zeros where none flows.
Tensor concat_gradients(std::span<const Tensor> dy, const Shape& whole, const Extents& extents,
                        DType dtype, int axis) {
  std::vector<Tensor> parts(dy.begin(), dy.end());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].defined()) parts[i] = zeros(whole.with_dim(axis, extents[i]), dtype);
  return concat(parts, axis);
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

void require_per_axis(const char* op, const Shape& shape, const Extents& a, const Extents& b,
                      SourceLocation at) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  require(a.size() == rank && b.size() == rank, at, op, "expected ", rank,
          " numbers each for shape ", shape, ", got ", a.size(), " and ", b.size());
}

}  // namespace

Tensor concat(const std::vector<Tensor>& parts, int axis, SourceLocation at) {
  require(!parts.empty(), at, "concat", "expected at least one tensor, got none");
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : parts) {
    require_defined("concat", "a part", part, at);
    inputs.push_back(&part);
  }
  const Device device = common_device("concat", inputs, at);
  const int along = checked_axis("concat", axis, parts[0].shape(), at);
  require_concat(parts, along, "concat", at);
  Extents extents;
  std::int64_t total = 0;
  bool recorded = false;
  for (const Tensor& part : parts) {
    extents.push_back(part.dim(along));
    require(!__builtin_add_overflow(total, part.dim(along), &total), at, "concat", "axis ", along,
            " of the result is longer than any memory holds");
    recorded = recorded || recording({&part});
  }
  const Shape whole = parts[0].shape().with_dim(along, total, at, "concat");
  const Tensor y =
      traced::on(device) ? traced::concat(parts, along) : joined(parts, along, device, whole);
  if (recorded && is_floating(y.dtype()))
    current_recorder()->record(
        "concat", inputs, {&y, 1},
        [extents, along](std::span<const Tensor> dy, GradientSink& sink) {
          std::int64_t from = 0;
          for (std::size_t i = 0; i < extents.size(); from += extents[i++]) {
            const int input = static_cast<int>(i);
            if (!sink.wants(input)) continue;
            std::vector<std::int64_t> box(dy[0].shape().dims().begin(), dy[0].shape().dims().end());
            box[static_cast<std::size_t>(along)] = extents[i];
            sink.put(input,
                     [&] { return slice(dy[0], box_begin(dy[0].shape(), along, from), box); });
          }
        });
  return y;
}

Tensor stack(const std::vector<Tensor>& parts, int axis, SourceLocation at) {
  require(!parts.empty(), at, "stack", "expected at least one tensor, got none");
  std::vector<Tensor> expanded;
  for (const Tensor& part : parts) {
    require_defined("stack", "a part", part, at);
    require(part.shape() == parts[0].shape(), at, "stack", "expected tensors of one shape, got ",
            parts[0].shape(), " and ", part.shape());
    expanded.push_back(expand_dims(part, axis, at));
  }
  return concat(expanded, axis, at);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& extents, int axis,
                          SourceLocation at) {
  require_defined("split", "x", x, at);
  const int along = checked_axis("split", axis, x.shape(), at);
  std::int64_t total = 0;
  for (const std::int64_t extent : extents) {
    require(extent >= 0, at, "split", "extents must not be negative, got ", extent);
    // Beyond the axis the sum is wrong already, and may overflow no more.
    total = std::min(total + std::min(extent, x.dim(along) + 1), x.dim(along) + 1);
  }
  require(total == x.dim(along), at, "split", "the parts' extents add up to ", total,
          total > x.dim(along) ? " or more" : "", ", but axis ", axis, " of shape ", x.shape(),
          " has ", x.dim(along));
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t extent : extents) {
    parts.push_back(part_of("split", x, along, begin, extent, at));
    begin += extent;
  }
  if (is_floating(x.dtype()) && recording({&x})) {
    const Tensor* const input = &x;
    current_recorder()->record(
        "split", {&input, 1}, parts,
        [shape = x.shape(), extents, dtype = x.dtype(), along](std::span<const Tensor> dy,
                                                               GradientSink& sink) {
          if (sink.wants(0))
            sink.put(0, [&] { return concat_gradients(dy, shape, extents, dtype, along); });
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

Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin,
             const std::vector<std::int64_t>& extents, SourceLocation at) {
  require_defined("slice", "x", x, at);
  const Device device = common_device("slice", {&x}, at);
  const Shape& shape = x.shape();
  require_per_axis("slice", shape, begin, extents, at);
  Shape box = shape;
  Extents after(begin.size());
  bool rows = shape.rank() > 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t extent =
        extents[i] == -1 ? shape[axis] - std::max<std::int64_t>(begin[i], 0) : extents[i];
    require(begin[i] >= 0 && extent >= 0 && begin[i] <= shape[axis] - extent, at, "slice", "begin ",
            begin[i], " and extent ", extents[i], " reach outside axis ", axis, " of shape ",
            shape);
    box = box.with_dim(axis, extent);
    after[i] = shape[axis] - begin[i] - extent;
    rows = rows && (axis == 0 || extent == shape[axis]);
  }
  Tensor y;
  if (traced::on(device)) {
    y = traced::slice(x, begin, Extents(box.dims().begin(), box.dims().end()));
  } else if (rows) {
    y = part_of("slice", x, 0, begin[0], box[0], at);
  } else {
    y = make_result(device, x.dtype(), box);
    const auto copied = [begin](Tensor& to, const Tensor& from) {
      copy_box(from, to, begin, false);
    };
    launch("slice", device, writes(y), reads(x), copied, copied);
  }
  if (is_floating(x.dtype()))
    record("slice", {&x}, y, [begin, after](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return pad(dy, begin, after); });
    });
  return y;
}

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before,
           const std::vector<std::int64_t>& after, SourceLocation at) {
  require_defined("pad", "x", x, at);
  const Device device = common_device("pad", {&x}, at);
  require_per_axis("pad", x.shape(), before, after, at);
  Shape shape = x.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    require(before[i] >= 0 && after[i] >= 0, at, "pad", "expected counts of 0 or more, got ",
            before[i], " and ", after[i]);
    std::int64_t extent = 0;
    require(!__builtin_add_overflow(before[i], after[i], &extent) &&
                !__builtin_add_overflow(extent, shape[axis], &extent),
            at, "pad", before[i], " and ", after[i], " zeros around axis ", axis, " of shape ",
            x.shape(), " are more than any memory holds");
    shape = shape.with_dim(axis, extent, at, "pad");
  }
  Tensor y;
  if (traced::on(device)) {
    y = traced::pad(x, before, after);
  } else {
    y = make_result(device, x.dtype(), shape);
    const auto padded = [before](Tensor& to, const Tensor& from) {
      if (to.num_elements() != from.num_elements())
        zero_bytes(to.device(), write<void>(to), to.bytes());
      copy_box(from, to, before, true);
    };
    launch("pad", device, writes(y), reads(x), padded, padded);
  }
  if (is_floating(x.dtype()))
    record("pad", {&x}, y, [before, own = x.shape()](const Tensor& dy, GradientSink& sink) {
      const std::vector<std::int64_t> extents(own.dims().begin(), own.dims().end());
      if (sink.wants(0)) sink.put(0, [&] { return slice(dy, before, extents); });
    });
  return y;
}

}  // namespace lockstep
