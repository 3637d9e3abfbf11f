// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/shape_ops.h>

#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

#include "ops/launch.h"
#include "ops/strided_copy.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

using Dims = std::span<const std::int64_t>;

Tensor view(const char* op, const Tensor& x, const Shape& shape) {
  Tensor y = x.with_shape(shape);
  if (is_floating(x.dtype()))
    record(op, {&x}, y, [shape = x.shape()](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return reshape(dy, shape); });
    });
  return y;
}

// Axis i of the result is axis from[i] of x.
Tensor transposed(const Tensor& x, const int* from, Device device, const Shape& shape) {
  Tensor y = make_result(device, x.dtype(), shape);
  const Strides from_strides(x.shape()), to_strides(shape);
  StridedCopy copy;
  for (int axis = 0; axis < shape.rank(); ++axis)
    copy.add_axis(shape[axis], from_strides[from[axis]], to_strides[axis]);
  const auto copied = [copy](Tensor& to, const Tensor& source) {
    run_strided(copy, size_of(source.dtype()), source.raw_data(), write<void>(to), to.device());
  };
  launch("transpose", device, writes(y), reads(x), copied, copied);
  return y;
}

Tensor broadcasted(const Tensor& x, Device device, const Shape& shape) {
  const Shape& own = x.shape();
  const int added = shape.rank() - own.rank();
  Tensor y = make_result(device, x.dtype(), shape);
  const Strides from(own), to(shape);
  StridedCopy copy;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool repeated = axis < added || own[axis - added] == 1;
    copy.add_axis(shape[axis], repeated ? 0 : from[axis - added], to[axis]);
  }
  const auto copied = [copy](Tensor& to, const Tensor& source) {
    run_strided(copy, size_of(source.dtype()), source.raw_data(), write<void>(to), to.device());
  };
  launch("broadcast_to", device, writes(y), reads(x), copied, copied);
  return y;
}

std::string text(std::initializer_list<std::int64_t> extents) {
  std::string result = "[";
  const char* separator = "";
  for (const std::int64_t extent : extents) {
    result += separator + std::to_string(extent);
    separator = ", ";
  }
  return result + "]";
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape, SourceLocation at) {
  require_defined("reshape", "x", x, at);
  require(x.num_elements() == shape.num_elements(), at, "reshape", "shape ", x.shape(), " has ",
          x.num_elements(), " elements, ", shape, " has ", shape.num_elements());
  return view("reshape", x, shape);
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents, SourceLocation at) {
  require_defined("reshape", "x", x, at);
  require(extents.size() <= Shape::kMaxRank, at, "reshape", "rank ", extents.size(),
          " is above the limit of ", Shape::kMaxRank);
  std::int64_t dims[Shape::kMaxRank];
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  std::size_t rank = 0;
  for (const std::int64_t extent : extents) {
    dims[rank] = extent;
    if (extent == -1) {
      require(!open, at, "reshape", "expected at most one extent of -1, got ", text(extents));
      open = &dims[rank];
    } else {
      require(extent >= 0, at, "reshape", "expected extents of 0 or more, or one -1, got ",
              text(extents));
      require(!__builtin_mul_overflow(known, extent, &known), at, "reshape", "shape ", x.shape(),
              " of ", x.num_elements(), " elements cannot become ", text(extents));
    }
    ++rank;
  }
  if (open) {
    require(known > 0 && x.num_elements() % known == 0, at, "reshape", "shape ", x.shape(), " of ",
            x.num_elements(), " elements does not divide into ", text(extents));
    *open = x.num_elements() / known;
  }
  return reshape(x, Shape(Dims(dims, rank), at, "reshape"), at);
}

Tensor expand_dims(const Tensor& x, int axis, SourceLocation at) {
  require_defined("expand_dims", "x", x, at);
  const int rank = x.rank() + 1;
  require(rank <= Shape::kMaxRank, at, "expand_dims", "rank is at the limit of ", Shape::kMaxRank);
  require(axis >= -rank && axis < rank, at, "expand_dims", "axis ", axis,
          " is out of range for shape ", x.shape(), "; expected ", -rank, " to ", rank - 1);
  return view("expand_dims", x, x.shape().with_axis(axis, 1, at, "expand_dims"));
}

Tensor squeeze(const Tensor& x, const std::vector<int>& axes, SourceLocation at) {
  require_defined("squeeze", "x", x, at);
  const Shape& shape = x.shape();
  bool removed[Shape::kMaxRank];
  for (int axis = 0; axis < shape.rank(); ++axis) removed[axis] = axes.empty() && shape[axis] == 1;
  for (const int named : axes) {
    const int axis = checked_axis("squeeze", named, shape, at);
    require(shape[axis] == 1, at, "squeeze", "axis ", named, " of shape ", shape, " has extent ",
            shape[axis], "; expected 1");
    removed[axis] = true;
  }
  std::int64_t dims[Shape::kMaxRank];
  std::size_t rank = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!removed[axis]) dims[rank++] = shape[axis];
  return view("squeeze", x, Shape(Dims(dims, rank)));
}

Tensor flatten_from(const Tensor& x, int axis, SourceLocation at) {
  require_defined("flatten_from", "x", x, at);
  const Shape& shape = x.shape();
  const int first = checked_axis("flatten_from", axis, shape, at);
  std::int64_t dims[Shape::kMaxRank];
  std::int64_t rest = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < first)
      dims[i] = shape[i];
    else
      rest *= shape[i];
  }
  dims[first] = rest;
  return view("flatten_from", x, Shape(Dims(dims, static_cast<std::size_t>(first) + 1)));
}

Tensor transpose(const Tensor& x, const std::vector<int>& permutation, SourceLocation at) {
  require_defined("transpose", "x", x, at);
  const Device device = common_device("transpose", {&x}, at);
  const Shape& shape = x.shape();
  const int rank = shape.rank();
  require(permutation.empty() || static_cast<int>(permutation.size()) == rank, at, "transpose",
          "expected a permutation of ", rank, " axes for shape ", shape, ", got ",
          permutation.size());
  std::int64_t dims[Shape::kMaxRank];
  int from[Shape::kMaxRank];
  std::vector<int> inverse(static_cast<std::size_t>(rank), -1);
  for (int axis = 0; axis < rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    from[axis] = permutation.empty() ? rank - 1 - axis
                                     : checked_axis("transpose", permutation[i], shape, at);
    int& back = inverse[static_cast<std::size_t>(from[axis])];
    require(back < 0, at, "transpose", "the permutation names axis ", from[axis], " of shape ",
            shape, " twice");
    back = axis;
    dims[axis] = shape[from[axis]];
  }
  const Shape result(Dims(dims, static_cast<std::size_t>(rank)));
  Tensor y = traced::on(device) ? traced::transpose(x, {from, static_cast<std::size_t>(rank)})
                                : transposed(x, from, device, result);
  if (is_floating(x.dtype()))
    record("transpose", {&x}, y, [inverse](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return transpose(dy, inverse); });
    });
  return y;
}

Tensor broadcast_to(const Tensor& x, const Shape& shape, SourceLocation at) {
  require_defined("broadcast_to", "x", x, at);
  const Device device = common_device("broadcast_to", {&x}, at);
  const Shape& own = x.shape();
  const int added = shape.rank() - own.rank();
  bool fits = added >= 0;
  for (int axis = 0; axis < own.rank() && fits; ++axis)
    fits = own[axis] == 1 || own[axis] == shape[axis + added];
  require(fits, at, "broadcast_to", "shape ", own, " does not broadcast to ", shape);
  Tensor y = traced::on(device) ? traced::broadcast_to(x, shape) : broadcasted(x, device, shape);
  if (is_floating(x.dtype()))
    record("broadcast_to", {&x}, y, [own](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return sum_to_shape(dy, own); });
    });
  return y;
}

}  // namespace lockstep
