// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/gather.h>

#include <lockstep/ops/recorder.h>

#include <cstring>

#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

void require_indices(const char* op, const Tensor& indices, SourceLocation at) {
  require_defined(op, "indices", indices, at);
  require_dtype(indices.dtype() == DType::i32 || indices.dtype() == DType::i64, op, indices,
                "i32 or i64 as indices", at);
}

// Calls f(place, index) for each index.
template <class F>
void for_each_index(const Tensor& indices, F&& f) {
  const std::int64_t n = indices.num_elements();
  if (indices.dtype() == DType::i32) {
    for (std::int64_t i = 0; i < n; ++i) f(i, std::int64_t{read<std::int32_t>(indices)[i]});
  } else {
    for (std::int64_t i = 0; i < n; ++i) f(i, read<std::int64_t>(indices)[i]);
  }
}

void require_in_range(const char* op, std::int64_t index, std::int64_t place, std::int64_t rows,
                      SourceLocation at) {
  require(index >= 0 && index < rows, at, op, "index ", index, " at place ", place,
          " is outside the ", rows, " rows");
}

Shape joined(const char* op, const Shape& front, const Shape& back, int skipped,
             SourceLocation at) {
  std::int64_t dims[2 * Shape::kMaxRank];
  std::size_t rank = 0;
  for (const std::int64_t dim : front.dims()) dims[rank++] = dim;
  for (int axis = skipped; axis < back.rank(); ++axis) dims[rank++] = back[axis];
  return Shape(std::span<const std::int64_t>(dims, rank), at, op);
}

template <class T>
void add_row(const T* from, T* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      to[i] += from[i];
    else if constexpr (std::is_integral_v<T>)
      to[i] =
          static_cast<T>(static_cast<std::uint64_t>(to[i]) + static_cast<std::uint64_t>(from[i]));
    else
      to[i] = T(static_cast<float>(to[i]) + static_cast<float>(from[i]));
  }
}

void one_hot_cpu(const Tensor& indices, std::int64_t depth, Tensor& y) {
  if (y.bytes()) std::memset(write<void>(y), 0, y.bytes());
  visit_dtype(y.dtype(), [&]<class T>(T) {
    T one;
    if constexpr (std::is_arithmetic_v<T>)
      one = T(1);
    else
      one = T(1.0f);
    for_each_index(indices, [&](std::int64_t place, std::int64_t index) {
      if (index >= 0 && index < depth) write<T>(y)[place * depth + index] = one;
    });
  });
}

Tensor gather_cpu(const Tensor& x, const Tensor& indices, Device device, const Shape& shape,
                  SourceLocation at) {
  const std::int64_t rows = x.dim(0);
  Tensor y = make_result(device, x.dtype(), shape);
  const std::size_t bytes = rows == 0 ? 0 : x.bytes() / static_cast<std::size_t>(rows);
  launch(
      "gather", device, writes(y), reads(x, indices),
      [=](Tensor& to, const Tensor& from, const Tensor& chosen) {
        const auto* const first = static_cast<const std::byte*>(from.raw_data());
        for_each_index(chosen, [&](std::int64_t place, std::int64_t index) {
          require_in_range("gather", index, place, rows, at);
          std::memcpy(write<std::byte>(to) + static_cast<std::size_t>(place) * bytes,
                      first + static_cast<std::size_t>(index) * bytes, bytes);
        });
      },
      [=](Tensor& to, const Tensor& from, const Tensor& chosen) {
        const std::int64_t width = rows == 0 ? 0 : from.num_elements() / rows;
        cuda::gather(size_of(to.dtype()), chosen.dtype(), from.raw_data(), chosen.raw_data(),
                     write<void>(to), rows, width, to.num_elements(), to.device());
      });
  return y;
}

Tensor scatter_add_cpu(const Tensor& indices, const Tensor& updates, Device device,
                       const Shape& shape, SourceLocation at) {
  constexpr const char* op = "scatter_add";
  const std::int64_t rows = shape[0];
  Tensor y = make_result(device, updates.dtype(), shape);
  const std::int64_t count = indices.num_elements();
  const std::int64_t width = count == 0 ? 0 : updates.num_elements() / count;
  launch(
      op, device, writes(y), reads(indices, updates),
      [=](Tensor& to, const Tensor& chosen, const Tensor& added) {
        if (to.bytes()) std::memset(write<void>(to), 0, to.bytes());
        visit_dtype(added.dtype(), [&]<class T>(T) {
          if constexpr (!std::is_same_v<T, bool>)
            for_each_index(chosen, [&](std::int64_t place, std::int64_t index) {
              require_in_range(op, index, place, rows, at);
              add_row(read<T>(added) + place * width, write<T>(to) + index * width, width);
            });
        });
      },
      [=](Tensor& to, const Tensor& chosen, const Tensor& added) {
        cuda::scatter_add(to.dtype(), chosen.dtype(), chosen.raw_data(), added.raw_data(),
                          write<void>(to), count, count == 0 ? 1 : width, to.num_elements(),
                          to.device());
      });
  return y;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, SourceLocation at) {
  require_indices("gather", indices, at);
  require_defined("gather", "x", x, at);
  require(x.rank() >= 1, at, "gather", "expected x to have rows, got a scalar");
  const Device device = common_device("gather", {&x, &indices}, at);
  const std::int64_t rows = x.dim(0);
  const Shape shape = joined("gather", indices.shape(), x.shape(), 1, at);
  const Tensor y = traced::on(device) ? traced::gather(x, indices, shape)
                                      : gather_cpu(x, indices, device, shape, at);
  if (is_floating(x.dtype()))
    record("gather", {&x, &indices}, y, [indices, rows](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return scatter_add(indices, dy, rows); });
    });
  return y;
}

Tensor scatter_add(const Tensor& indices, const Tensor& updates, std::int64_t rows,
                   SourceLocation at) {
  constexpr const char* op = "scatter_add";
  require_indices(op, indices, at);
  require_defined(op, "updates", updates, at);
  require_dtype(is_floating(updates.dtype()) || updates.dtype() == DType::i32 ||
                    updates.dtype() == DType::i64,
                op, updates, "a floating dtype, i32 or i64 as updates", at);
  require(rows >= 0, at, op, "expected 0 or more rows, got ", rows);
  bool fits = updates.rank() >= indices.rank();
  for (int axis = 0; axis < indices.rank() && fits; ++axis)
    fits = updates.dim(axis) == indices.dim(axis);
  require(fits, at, op, "expected updates whose shape begins with that of the indices, ",
          indices.shape(), ", got ", updates.shape());
  const Device device = common_device(op, {&indices, &updates}, at);
  const Shape shape = joined(op, Shape({rows}, at, op), updates.shape(), indices.rank(), at);
  const Tensor y = traced::on(device) ? traced::scatter_add(indices, updates, shape)
                                      : scatter_add_cpu(indices, updates, device, shape, at);
  if (is_floating(updates.dtype()))
    record(op, {&indices, &updates}, y, [indices](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(1)) sink.put(1, [&] { return gather(dy, indices); });
    });
  return y;
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype, SourceLocation at) {
  require_indices("one_hot", indices, at);
  require(depth >= 0, at, "one_hot", "expected a depth of 0 or more, got ", depth);
  const Device device = common_device("one_hot", {&indices}, at);
  const Shape shape = joined("one_hot", indices.shape(), Shape({depth}, at, "one_hot"), 0, at);
  if (traced::on(device)) return traced::one_hot(indices, depth, dtype, shape);
  Tensor y = make_result(device, dtype, shape);
  launch(
      "one_hot", device, writes(y), reads(indices),
      [depth](Tensor& to, const Tensor& chosen) { one_hot_cpu(chosen, depth, to); },
      [depth](Tensor& to, const Tensor& chosen) {
        cuda::one_hot(to.dtype(), chosen.dtype(), chosen.raw_data(), write<void>(to), depth,
                      to.num_elements(), to.device());
      });
  return y;
}

}  // namespace lockstep
