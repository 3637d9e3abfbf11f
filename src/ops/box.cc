// SPDX-License-Identifier: Apache-2.0
#include "ops/box.h"

#include <algorithm>

#include "ops/around_axis.h"
#include "ops/launch.h"
#include "ops/strided_copy.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// How the box of a tensor is walked: from its first element on, in elements.
struct Walk {
  Strides strides;
  std::int64_t offset = 0;

  Walk(const Shape& whole, const Extents& begin, const Extents& steps) : strides(whole) {
    for (int axis = 0; axis < whole.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (!begin.empty()) offset += begin[i] * strides[axis];
      if (!steps.empty()) strides.values[axis] *= steps[i];
    }
  }
};

template <class Byte>
Byte* moved(Byte* first, std::int64_t elements, DType dtype) {
  return first + elements * static_cast<std::int64_t>(size_of(dtype));
}

void copy_walks(const Tensor& from, const Walk& source, Tensor& to, const Walk& target,
                const Shape& box) {
  if (box.num_elements() == 0) return;
  StridedCopy copy;
  for (int axis = 0; axis < box.rank(); ++axis)
    copy.add_axis(box[axis], source.strides[axis], target.strides[axis]);
  run_strided(copy, size_of(from.dtype()),
              moved(static_cast<const std::byte*>(from.raw_data()), source.offset, from.dtype()),
              moved(write<std::byte>(to), target.offset, from.dtype()), to.device());
}

// Calls copy(part, its rows from `row` on, offset of these in the whole in elements, their strides)
// for all parts of some rows of the whole, then of the next, so that the whole is walked but once.
template <class Copy>
void for_each_strip(const Shape& whole, const Extents& extents, int axis, std::size_t element_size,
                    Copy&& copy) {
  constexpr std::int64_t kStrip = 4096;  // bytes: a page, which is then read as prefetchers expect
  const AroundAxis around(whole, axis);
  const std::int64_t row = around.along * around.inner;
  if (row == 0) return;
  const std::int64_t rows =
      std::max<std::int64_t>(1, kStrip / (row * static_cast<std::int64_t>(element_size)));
  for (std::int64_t first = 0; first < around.outer; first += rows) {
    std::int64_t begin = first * row;
    for (std::size_t i = 0; i < extents.size(); begin += extents[i++] * around.inner)
      copy(i, first, std::min(rows, around.outer - first), begin, extents[i] * around.inner, row);
  }
}

}  // namespace

Extents box_begin(const Shape& shape, int axis, std::int64_t begin) {
  Extents result(static_cast<std::size_t>(shape.rank()));
  result[static_cast<std::size_t>(axis)] = begin;
  return result;
}

void copy_to_box(const Tensor& from, Tensor& to, const Extents& begin, const Extents& strides) {
  copy_walks(from, Walk(from.shape(), {}, {}), to, Walk(to.shape(), begin, strides), from.shape());
}

void copy_from_box(const Tensor& from, Tensor& to, const Extents& begin, const Extents& strides) {
  copy_walks(from, Walk(from.shape(), begin, strides), to, Walk(to.shape(), {}, {}), to.shape());
}

void copy_box(const Tensor& from, const Extents& from_begin, Tensor& to, const Extents& to_begin,
              const Extents& extents) {
  copy_walks(from, Walk(from.shape(), from_begin, {}), to, Walk(to.shape(), to_begin, {}),
             Shape(extents));
}

void join_parts(std::span<const Tensor> parts, const Extents& extents, int axis, Tensor& whole) {
  const DType dtype = whole.dtype();
  for_each_strip(
      whole.shape(), extents, axis, size_of(dtype),
      [&](std::size_t i, std::int64_t first, std::int64_t rows, std::int64_t at, std::int64_t own,
          std::int64_t row) {
        if (!parts[i].defined()) return;
        StridedCopy copy;
        copy.add_axis(rows, own, row);
        copy.add_axis(own, 1, 1);
        copy.run(size_of(dtype),
                 moved(static_cast<const std::byte*>(parts[i].raw_data()), first * own, dtype),
                 moved(write<std::byte>(whole), at, dtype));
      });
}

void part_whole(const Tensor& whole, const Extents& extents, int axis, std::span<Tensor> parts) {
  const DType dtype = whole.dtype();
  for_each_strip(whole.shape(), extents, axis, size_of(dtype),
                 [&](std::size_t i, std::int64_t first, std::int64_t rows, std::int64_t at,
                     std::int64_t own, std::int64_t row) {
                   StridedCopy copy;
                   copy.add_axis(rows, row, own);
                   copy.add_axis(own, 1, 1);
                   copy.run(size_of(dtype),
                            moved(static_cast<const std::byte*>(whole.raw_data()), at, dtype),
                            moved(write<std::byte>(parts[i]), first * own, dtype));
                 });
}

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
    copy_from_box(from, to, first);
  };
  launch(op, device, writes(y), reads(x), copied, copied);
  return y;
}

}  // namespace lockstep
