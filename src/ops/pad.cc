// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/operand.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>

#include "device/accelerator.h"
#include "ops/box.h"
#include "ops/launch.h"
#include "ops/operands.h"
#include "ops/strided_copy.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "pad";

Shape padded_shape(const Shape& own, const Extents& before, const Extents& after,
                   SourceLocation at) {
  const auto rank = static_cast<std::size_t>(own.rank());
  require(before.size() == rank && after.size() == rank, at, kOp, "expected ", rank,
          " numbers each for shape ", own, ", got ", before.size(), " and ", after.size());
  Shape shape = own;
  for (int axis = 0; axis < own.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    require(before[i] >= 0 && after[i] >= 0, at, kOp, "expected counts of 0 or more around axis ",
            axis, " of shape ", own, ", got ", before[i], " and ", after[i]);
    std::int64_t extent = 0;
    require(!__builtin_add_overflow(before[i], after[i], &extent) &&
                !__builtin_add_overflow(extent, own[axis], &extent),
            at, kOp, before[i], " and ", after[i], " elements around axis ", axis, " of shape ",
            own, " are more than any memory holds");
    shape = shape.with_dim(axis, extent, at, kOp);
  }
  return shape;
}

// Every element the only one of `value`.
void fill(Tensor& to, const Tensor& value) {
  if (to.num_elements() == 0) return;
  StridedCopy copy;
  copy.add_axis(to.num_elements(), 0, 1);
  run_strided(copy, size_of(to.dtype()), value.raw_data(), write<void>(to), to.device());
}

Tensor with_constant(const Tensor& x, const Extents& before, const Shape& shape, double value,
                     Device device, SourceLocation at) {
  Tensor y = make_result(device, x.dtype(), shape);
  const bool all = shape.num_elements() == x.num_elements();
  if (value == 0) {
    const auto padded = [before, all](Tensor& to, const Tensor& from) {
      if (!all) zero_bytes(to.device(), write<void>(to), to.bytes());
      copy_to_box(from, to, before);
    };
    launch(kOp, device, writes(y), reads(x), padded, padded);
    return y;
  }
  const auto padded = [before, all](Tensor& to, const Tensor& from, const Tensor& element) {
    if (!all) fill(to, element);
    copy_to_box(from, to, before);
  };
  const Tensor element = as_tensor(kOp, Operand(value, at), x.dtype());
  launch(kOp, device, writes(y), reads(x, element), padded, padded);
  return y;
}

// `before` and `after` elements along an axis, those at the ends the other way round; `skipped` at
// the very end (0 or 1) are not repeated.
Tensor mirrored(const Tensor& x, int axis, std::int64_t before, std::int64_t after,
                std::int64_t skipped, SourceLocation at) {
  const std::int64_t size = x.dim(axis);
  require(before <= size - skipped && after <= size - skipped, at, kOp, "expected at most ",
          size - skipped, " elements to repeat around axis ", axis, " of shape ", x.shape(),
          ", got ", before, " and ", after);
  // From `first` on downwards.
  const auto backwards = [&](std::int64_t first, std::int64_t count) {
    std::vector<SliceRange> ranges(static_cast<std::size_t>(axis) + 1);
    ranges.back() = {.begin = first, .stride = -1};
    if (first >= count) ranges.back().end = first - count;
    return strided_slice(x, ranges, at);
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(backwards(skipped + before - 1, before));
  parts.push_back(x);
  if (after > 0) parts.push_back(backwards(size - skipped - 1, after));
  return concat(parts, axis, at);
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before,
           const std::vector<std::int64_t>& after, const PadOptions& options, SourceLocation at) {
  require_defined(kOp, "x", x, at);
  const Device device = common_device(kOp, {&x}, at);
  const Shape own = x.shape();
  const Shape shape = padded_shape(own, before, after, at);
  if (options.mode != PadMode::constant) {
    Tensor y = reshape(x, own, at);
    for (int axis = 0; axis < own.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (before[i] > 0 || after[i] > 0)
        y = mirrored(y, axis, before[i], after[i], options.mode == PadMode::reflect, at);
    }
    return y;
  }
  Tensor y = traced::on(device) ? traced::pad(x, before, after, options.value)
                                : with_constant(x, before, shape, options.value, device, at);
  if (is_floating(x.dtype()))
    record(kOp, {&x}, y, [before, own](const Tensor& dy, GradientSink& sink) {
      const Extents extents(own.dims().begin(), own.dims().end());
      if (sink.wants(0)) sink.put(0, [&] { return slice(dy, before, extents); });
    });
  return y;
}

}  // namespace lockstep
