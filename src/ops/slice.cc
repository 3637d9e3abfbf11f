// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

#include "device/accelerator.h"
#include "ops/box.h"
#include "ops/launch.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// Ranges with all that NumPy leaves open filled in, a number for each axis of the whole.
struct Places {
  Extents begin = {}, extents = {}, strides = {};
  Shape shape;

  std::int64_t count() const { return shape.num_elements(); }
};

// One axis of `size`: where the range starts, and how many elements it has.
struct AxisPlaces {
  std::int64_t begin = 0, extent = 0, stride = 1;

  AxisPlaces(const SliceRange& range, std::int64_t size) {
    // A longer stride than the axis gives one element, too.
    const std::int64_t longest = std::max<std::int64_t>(size, 1);
    stride = std::clamp(range.stride, -longest, longest);
    const bool forward = stride > 0;
    const std::int64_t least = forward ? 0 : -1, most = forward ? size : size - 1;
    const auto place = [&](std::int64_t given) {
      return std::clamp(given < 0 ? given + size : given, least, most);
    };
    const std::int64_t first = range.begin.has_value() ? place(*range.begin)
                               : forward               ? least
                                                       : most;
    const std::int64_t end = range.end.has_value() ? place(*range.end) : forward ? most : least;
    const std::int64_t distance = forward ? end - first : first - end;
    if (distance <= 0) return;
    begin = first;
    extent = (distance - 1) / std::abs(stride) + 1;
  }
};

Places places_of(const char* op, const Shape& shape, const std::vector<SliceRange>& ranges,
                 SourceLocation at) {
  require(static_cast<int>(ranges.size()) <= shape.rank(), at, op, "expected at most ",
          shape.rank(), " ranges for shape ", shape, ", got ", ranges.size());
  const SliceRange whole;
  Places places{.shape = shape};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const SliceRange& range = i < ranges.size() ? ranges[i] : whole;
    require(range.stride != 0, at, op, "the stride of axis ", axis, " of shape ", shape,
            " is 0; expected another number");
    const AxisPlaces along(range, shape[axis]);
    places.begin.push_back(along.begin);
    places.extents.push_back(along.extent);
    places.strides.push_back(along.stride);
    places.shape = places.shape.with_dim(axis, along.extent);
  }
  return places;
}

void require_per_axis(const char* op, const Shape& shape, const Extents& a, const Extents& b,
                      SourceLocation at) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  require(a.size() == rank && b.size() == rank, at, op, "expected ", rank,
          " numbers each for shape ", shape, ", got ", a.size(), " and ", b.size());
}

}  // namespace

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
    const auto copied = [begin](Tensor& to, const Tensor& from) { copy_from_box(from, to, begin); };
    launch("slice", device, writes(y), reads(x), copied, copied);
  }
  if (is_floating(x.dtype()))
    record("slice", {&x}, y, [begin, after](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return pad(dy, begin, after); });
    });
  return y;
}

Tensor strided_slice(const Tensor& x, const std::vector<SliceRange>& ranges, SourceLocation at) {
  constexpr const char* kOp = "strided_slice";
  require_defined(kOp, "x", x, at);
  const Device device = common_device(kOp, {&x}, at);
  const Places places = places_of(kOp, x.shape(), ranges, at);
  Tensor y;
  if (traced::on(device)) {
    y = traced::strided_slice(x, places.begin, places.extents, places.strides);
  } else {
    y = make_result(device, x.dtype(), places.shape);
    const auto copied = [places](Tensor& to, const Tensor& from) {
      copy_from_box(from, to, places.begin, places.strides);
    };
    launch(kOp, device, writes(y), reads(x), copied, copied);
  }
  if (is_floating(x.dtype()))
    record(kOp, {&x}, y, [ranges, own = x.shape()](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return strided_slice_gradient(dy, own, ranges); });
    });
  return y;
}

Tensor strided_slice_gradient(const Tensor& dy, const Shape& shape,
                              const std::vector<SliceRange>& ranges, SourceLocation at) {
  constexpr const char* kOp = "strided_slice_gradient";
  require_defined(kOp, "dy", dy, at);
  const Device device = common_device(kOp, {&dy}, at);
  const Places places = places_of(kOp, shape, ranges, at);
  require(dy.shape() == places.shape, at, kOp, "expected dy of shape ", places.shape,
          ", which is what the ranges take of ", shape, ", got ", dy.shape());
  Tensor dx;
  if (traced::on(device)) {
    dx = traced::strided_slice_gradient(dy, shape, places.begin, places.strides);
  } else {
    dx = make_result(device, dy.dtype(), shape);
    const auto placed = [places](Tensor& to, const Tensor& from) {
      if (to.num_elements() != places.count()) zero_bytes(to.device(), write<void>(to), to.bytes());
      copy_to_box(from, to, places.begin, places.strides);
    };
    launch(kOp, device, writes(dx), reads(dy), placed, placed);
  }
  if (is_floating(dy.dtype()))
    record(kOp, {&dy}, dx, [ranges](const Tensor& d, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return strided_slice(d, ranges); });
    });
  return dx;
}

Tensor reverse(const Tensor& x, const std::vector<int>& axes, SourceLocation at) {
  require_defined("reverse", "x", x, at);
  std::vector<SliceRange> ranges(static_cast<std::size_t>(x.rank()));
  for (const int named : axes) {
    SliceRange& range =
        ranges[static_cast<std::size_t>(checked_axis("reverse", named, x.shape(), at))];
    require(range.stride == 1, at, "reverse", "axis ", named, " of shape ", x.shape(),
            " is named twice");
    range.stride = -1;
  }
  return strided_slice(x, ranges, at);
}

}  // namespace lockstep
