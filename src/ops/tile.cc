// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

#include "ops/box.h"
#include "ops/launch.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// Each axis is cut in two parts, which change places: so many boxes as there are pairs of parts.
// `shifts` are below the extents.
void roll_boxes(const Tensor& x, Tensor& y, const Extents& shifts) {
  const auto rank = static_cast<std::size_t>(x.rank());
  Extents from(rank), to(rank), extents(rank);
  for (unsigned box = 0; box < 1u << rank; ++box) {
    bool some = true;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::int64_t size = x.dim(static_cast<int>(axis)), shift = shifts[axis];
      const bool last = box >> axis & 1;
      from[axis] = last ? size - shift : 0;
      to[axis] = last ? 0 : shift;
      extents[axis] = last ? shift : size - shift;
      some = some && extents[axis] > 0;
    }
    if (some) copy_box(x, from, y, to, extents);
  }
}

Tensor rolled_by(const Tensor& x, const Extents& shifts) {
  const Device device = common_device("roll", {&x}, {});
  if (traced::on(device)) {
    Tensor y = reshape(x, x.shape());
    for (int axis = 0; axis < x.rank(); ++axis) {
      const std::int64_t shift = shifts[static_cast<std::size_t>(axis)];
      if (shift == 0) continue;
      const auto parts = split(y, {y.dim(axis) - shift, shift}, axis);
      y = concat({parts[1], parts[0]}, axis);
    }
    return y;
  }
  Tensor y = make_result(device, x.dtype(), x.shape());
  const auto roll_all = [shifts](Tensor& to, const Tensor& from) { roll_boxes(from, to, shifts); };
  launch("roll", device, writes(y), reads(x), roll_all, roll_all);
  if (is_floating(x.dtype()))
    record("roll", {&x}, y, [shifts](const Tensor& dy, GradientSink& sink) {
      Extents back = shifts;
      for (int axis = 0; axis < dy.rank(); ++axis) {
        std::int64_t& shift = back[static_cast<std::size_t>(axis)];
        if (shift > 0) shift = dy.dim(axis) - shift;
      }
      if (sink.wants(0)) sink.put(0, [&] { return rolled_by(dy, back); });
    });
  return y;
}

}  // namespace

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples, SourceLocation at) {
  require_defined("tile", "x", x, at);
  require(multiples.size() == static_cast<std::size_t>(x.rank()), at, "tile", "expected ", x.rank(),
          " numbers for shape ", x.shape(), ", got ", multiples.size());
  Shape shape = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t times = multiples[static_cast<std::size_t>(axis)];
    require(times >= 0, at, "tile", "expected 0 or more times along axis ", axis, " of shape ",
            x.shape(), ", got ", times);
    std::int64_t extent = 0;
    require(!__builtin_mul_overflow(times, x.dim(axis), &extent), at, "tile", times, " times axis ",
            axis, " of shape ", x.shape(), " is more than any memory holds");
    shape = shape.with_dim(axis, extent, at, "tile");
  }
  if (shape.num_elements() == 0) return reshape(slice(reshape(x, {-1}), {0}, {0}), shape, at);
  if (shape == x.shape()) return reshape(x, shape, at);
  // Up to three axes in one copy, each behind a new one along which it is repeated; inner axes first.
  std::vector<std::int64_t> inner(multiples.size(), 1), outer = multiples;
  int tiled = 0;
  for (std::size_t axis = multiples.size(); axis-- > 0 && tiled < 3;)
    if (multiples[axis] != 1) std::swap(inner[axis], outer[axis]), ++tiled;
  Extents once{1}, repeated{1};
  Shape now = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t times = inner[static_cast<std::size_t>(axis)];
    if (times != 1) {
      once.insert(once.end(), {1, 1});
      repeated.insert(repeated.end(), {times, 1});
    }
    once.back() *= x.dim(axis);
    repeated.back() *= x.dim(axis);
    now = now.with_dim(axis, times * x.dim(axis));
  }
  const Tensor y = reshape(broadcast_to(reshape(x, Shape(once), at), Shape(repeated), at), now, at);
  return tile(y, outer, at);
}

Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes,
            SourceLocation at) {
  require_defined("roll", "x", x, at);
  require(shifts.size() == axes.size(), at, "roll", "expected a shift for each axis, got ",
          shifts.size(), " shifts and ", axes.size(), " axes");
  Extents total(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = checked_axis("roll", axes[i], x.shape(), at);
    const std::int64_t size = std::max<std::int64_t>(x.dim(axis), 1);
    std::int64_t& sum = total[static_cast<std::size_t>(axis)];
    sum = (sum + shifts[i] % size + size) % size;
  }
  return rolled_by(x, total);
}

}  // namespace lockstep
