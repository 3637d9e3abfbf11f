// SPDX-License-Identifier: Apache-2.0
#include "ops/box.h"

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
      offset += begin[i] * strides[axis];
      if (!steps.empty()) strides.values[axis] *= steps[i];
    }
  }
};

template <class Byte>
Byte* moved(Byte* first, std::int64_t elements, DType dtype) {
  return first + elements * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

Extents box_begin(const Shape& shape, int axis, std::int64_t begin) {
  Extents result(static_cast<std::size_t>(shape.rank()));
  result[static_cast<std::size_t>(axis)] = begin;
  return result;
}

void copy_to_box(const Tensor& from, Tensor& to, const Extents& begin, const Extents& strides) {
  if (from.num_elements() == 0) return;
  const Strides own(from.shape());
  const Walk box(to.shape(), begin, strides);
  StridedCopy copy;
  for (int axis = 0; axis < from.rank(); ++axis)
    copy.add_axis(from.dim(axis), own[axis], box.strides[axis]);
  run_strided(copy, size_of(from.dtype()), from.raw_data(),
              moved(write<std::byte>(to), box.offset, from.dtype()), to.device());
}

void copy_from_box(const Tensor& from, Tensor& to, const Extents& begin, const Extents& strides) {
  if (to.num_elements() == 0) return;
  const Strides own(to.shape());
  const Walk box(from.shape(), begin, strides);
  StridedCopy copy;
  for (int axis = 0; axis < to.rank(); ++axis)
    copy.add_axis(to.dim(axis), box.strides[axis], own[axis]);
  run_strided(copy, size_of(from.dtype()),
              moved(static_cast<const std::byte*>(from.raw_data()), box.offset, from.dtype()),
              write<void>(to), to.device());
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
