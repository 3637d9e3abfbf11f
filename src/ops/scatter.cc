// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/scatter.h>

#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cstring>

#include "ops/around_axis.h"
#include "ops/cuda/kernels.h"
#include "ops/indices.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

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

// Rows of one element. Negative indices are passed over.
template <class T, class I>
void add_elements(const I* indices, std::int64_t count, const T* updates, const AroundAxis& target,
                  T* to) {
  for (std::int64_t o = 0; o < target.outer; ++o, updates += count, to += target.along)
    for (std::int64_t i = 0; i < count; ++i)
      if (indices[i] >= 0) add_row(updates + i, to + indices[i], 1);
}

template <class T, class I>
void add_rows(const I* indices, std::int64_t count, const T* updates, const AroundAxis& target,
              T* to) {
  if (target.inner == 1) return add_elements(indices, count, updates, target, to);
  for (std::int64_t o = 0; o < target.outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i, updates += target.inner)
      if (indices[i] >= 0) add_row(updates, to + indices[i] * target.inner, target.inner);
    to += target.along * target.inner;
  }
}

// `base`, or zeros where it is undefined, with the updates added along an axis. Not recorded.
Tensor scattered(const char* op, const Tensor& base, const Tensor& indices, const Tensor& updates,
                 int axis, const Shape& shape, Negative negative, SourceLocation at) {
  const Device device = common_device(op, {&base, &indices, &updates}, at);
  if (traced::on(device)) return traced::scatter_add(base, indices, updates, axis, shape);
  Tensor y = make_result(device, updates.dtype(), shape);
  const AroundAxis target(shape, axis);
  launch(
      op, device, writes(y), reads(base, indices, updates),
      [=](Tensor& to, const Tensor& start, const Tensor& chosen, const Tensor& added) {
        visit_indices(chosen, [&](const auto* first, std::int64_t count) {
          require_inside(op, first, count, target.along, at, negative);
          if (start.defined() && to.bytes())
            std::memcpy(write<void>(to), start.raw_data(), to.bytes());
          else if (to.bytes())
            std::memset(write<void>(to), 0, to.bytes());
          visit_dtype(added.dtype(), [&]<class T>(T) {
            if constexpr (!std::is_same_v<T, bool>)
              add_rows(first, count, read<T>(added), target, write<T>(to));
          });
        });
      },
      [=](Tensor& to, const Tensor& start, const Tensor& chosen, const Tensor& added) {
        cuda::scatter_add(to.dtype(), chosen.dtype(), start.defined() ? start.raw_data() : nullptr,
                          chosen.raw_data(), added.raw_data(), write<void>(to),
                          chosen.num_elements(), target.along, target.inner, to.num_elements(),
                          to.device());
      });
  return y;
}

void require_addable(const char* op, const char* what, const Tensor& updates, SourceLocation at) {
  require_defined(op, what, updates, at);
  require_dtype(is_floating(updates.dtype()) || updates.dtype() == DType::i32 ||
                    updates.dtype() == DType::i64,
                op, updates, "a floating dtype, i32 or i64 to add", at);
}

void require_slices(const char* op, const IndexedSlices& slices, SourceLocation at) {
  require_indices(op, slices.indices, at);
  require_addable(op, "values", slices.values, at);
  require(slices.shape.rank() > 0 && slices.indices.rank() == 1, at, op,
          "expected a list of indices of rows, got indices of shape ", slices.indices.shape(),
          " into ", slices.shape);
  const Shape expected = slices.shape.with_dim(0, slices.indices.dim(0));
  require(slices.values.shape() == expected, at, op, "expected values of shape ", expected,
          ", got ", slices.values.shape());
}

// `inner` stands in `outer` from axis `first` on.
bool has_at(const Shape& outer, int first, const Shape& inner) {
  if (outer.rank() < first + inner.rank()) return false;
  for (int axis = 0; axis < inner.rank(); ++axis)
    if (outer[first + axis] != inner[axis]) return false;
  return true;
}

// What scatter_nd and tensor_scatter_add make of their coordinates.
struct Blocks {
  Tensor numbers;
  Shape rows;  // the target, an axis in place of those that have coordinates

  Blocks(const char* op, const Tensor& indices, const Tensor& updates, const Shape& shape,
         SourceLocation at) {
    require_indices(op, indices, at);
    require_addable(op, "updates", updates, at);
    require(indices.rank() > 0 && indices.dim(-1) <= shape.rank(), at, op,
            "expected indices whose last axis has at most the ", shape.rank(),
            " coordinates of shape ", shape, ", got indices of shape ", indices.shape());
    const int coordinates = static_cast<int>(indices.dim(-1));
    const Shape expected = joined(op, indices.shape().without_axis(-1), shape, coordinates, at);
    require(updates.shape() == expected, at, op, "expected updates of shape ", expected,
            " for indices of shape ", indices.shape(), " into ", shape, ", got ", updates.shape());
    const auto extents = shape.dims().first(static_cast<std::size_t>(coordinates));
    numbers = row_numbers(op, indices, extents, Outside::nowhere, at);
    rows = joined(op, Shape{AroundAxis(shape, 0, coordinates).along}, shape, coordinates, at);
  }
};

// scatter_add() of what fits.
Tensor added_rows(const char* op, const Tensor& indices, const Tensor& updates, std::int64_t rows,
                  int along, SourceLocation at) {
  const Shape front(updates.shape().dims().first(static_cast<std::size_t>(along)));
  const Shape shape =
      joined(op, front.with_axis(along, rows, at, op), updates.shape(), along + indices.rank(), at);
  Tensor y = scattered(op, Tensor(), indices, updates, along, shape, Negative::refused, at);
  if (is_floating(updates.dtype()))
    record(op, {&indices, &updates}, y, [indices, along](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(1)) sink.put(1, [&] { return gather(dy, indices, along); });
    });
  return y;
}

// Whether no id is negative; not known where it would take a copy from a device.
bool known_not_negative(const Tensor& ids) {
  bool result = ids.device().is_host();
  if (result)
    visit_indices(ids, [&](const auto* first, std::int64_t count) {
      result = std::all_of(first, first + count, [](auto id) { return id >= 0; });
    });
  return result;
}

// Rows of dy by segment; zeros for negative ones.
Tensor rows_of_segments(const Tensor& dy, const Tensor& segment_ids, const Shape& shape) {
  if (dy.dim(0) == 0) return zeros(shape, dy.dtype());
  if (known_not_negative(segment_ids)) return gather(dy, segment_ids);
  Shape mask = segment_ids.shape();
  while (mask.rank() < shape.rank()) mask = mask.with_axis(mask.rank());
  const Tensor rows = gather(dy, maximum(segment_ids, 0));
  return select(reshape(greater_equal(segment_ids, 0), mask), rows, 0);
}

}  // namespace

Tensor scatter_add(const Tensor& indices, const Tensor& updates, std::int64_t rows, int axis,
                   SourceLocation at) {
  constexpr const char* kOp = "scatter_add";
  require_indices(kOp, indices, at);
  require_addable(kOp, "updates", updates, at);
  require(rows >= 0, at, kOp, "expected 0 or more rows, got ", rows);
  const int rank = updates.rank() - indices.rank() + 1;  // of the result
  const int along = axis < 0 ? axis + rank : axis;
  require(along >= 0 && along < rank && has_at(updates.shape(), along, indices.shape()), at, kOp,
          "expected updates whose shape has that of the indices, ", indices.shape(), ", from axis ",
          axis, " on, got ", updates.shape());
  return added_rows(kOp, indices, updates, rows, along, at);
}

Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape,
                  SourceLocation at) {
  constexpr const char* kOp = "scatter_nd";
  const Blocks blocks(kOp, indices, updates, shape, at);
  Tensor y =
      scattered(kOp, Tensor(), blocks.numbers, updates, 0, blocks.rows, Negative::refused, at)
          .with_shape(shape);
  if (is_floating(updates.dtype()))
    record(kOp, {&indices, &updates}, y, [indices](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(1)) sink.put(1, [&] { return gather_nd(dy, indices); });
    });
  return y;
}

Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates,
                          SourceLocation at) {
  constexpr const char* kOp = "tensor_scatter_add";
  require_addable(kOp, "x", x, at);
  require_indices(kOp, indices, at);
  require_addable(kOp, "updates", updates, at);
  require_same_dtype(kOp, x, updates, at);
  const Blocks blocks(kOp, indices, updates, x.shape(), at);
  Tensor y = scattered(kOp, x.with_shape(blocks.rows), blocks.numbers, updates, 0, blocks.rows,
                       Negative::refused, at)
                 .with_shape(x.shape());
  if (is_floating(x.dtype()))
    record(kOp, {&x, &indices, &updates}, y, [indices](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(2)) sink.put(2, [&] { return gather_nd(dy, indices); });
      if (sink.wants(0)) sink.put(0, [&] { return dy; });
    });
  return y;
}

Tensor to_dense(const IndexedSlices& slices, SourceLocation at) {
  constexpr const char* kOp = "to_dense";
  require_slices(kOp, slices, at);
  return added_rows(kOp, slices.indices, slices.values, slices.shape[0], 0, at);
}

IndexedSlices coalesce(const IndexedSlices& slices, SourceLocation at) {
  constexpr const char* kOp = "coalesce";
  require_slices(kOp, slices, at);
  if (traced::on(slices.indices.device()) || traced::on(slices.values.device()))
    throw Unimplemented(message(kOp, "looks at indices, which a step on TPUs cannot wait for"), at);
  const RecorderScope suspended(nullptr);
  const auto named = cast(slices.indices, DType::i64).to_host().to_vector<std::int64_t>();
  require_inside(kOp, named.data(), slices.indices.dim(0), slices.shape[0], at);
  std::vector<std::int64_t> rows(named);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor indices(Shape{count}, std::span<const std::int64_t>(rows));
  if (rows == named) return {slices.values, indices, slices.shape};
  std::vector<std::int64_t> places;  // among `rows`
  places.reserve(named.size());
  for (const std::int64_t row : named)
    places.push_back(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
  const Tensor segments(slices.indices.shape(), std::span<const std::int64_t>(places));
  return {unsorted_segment_sum(slices.values, segments, count, at), indices, slices.shape};
}

Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segment_ids, std::int64_t num_segments,
                            SourceLocation at) {
  constexpr const char* kOp = "unsorted_segment_sum";
  require_addable(kOp, "x", x, at);
  require_indices(kOp, segment_ids, at);
  require(num_segments >= 0, at, kOp, "expected 0 or more segments, got ", num_segments);
  require(has_at(x.shape(), 0, segment_ids.shape()), at, kOp,
          "expected x whose shape begins with that of the segments, ", segment_ids.shape(),
          ", got ", x.shape());
  const Shape shape =
      joined(kOp, Shape({num_segments}, at, kOp), x.shape(), segment_ids.rank(), at);
  Tensor y = scattered(kOp, Tensor(), segment_ids, x, 0, shape, Negative::passed_over, at);
  if (is_floating(x.dtype()))
    record(kOp, {&x, &segment_ids}, y,
           [segment_ids, own = x.shape()](const Tensor& dy, GradientSink& sink) {
             if (sink.wants(0)) sink.put(0, [&] { return rows_of_segments(dy, segment_ids, own); });
           });
  return y;
}

Tensor segment_sum(const Tensor& x, const Tensor& segment_ids, SourceLocation at) {
  constexpr const char* kOp = "segment_sum";
  require_addable(kOp, "x", x, at);
  require_indices(kOp, segment_ids, at);
  require(segment_ids.rank() == 1 && has_at(x.shape(), 0, segment_ids.shape()), at, kOp,
          "expected a segment for each row of x, got segments of shape ", segment_ids.shape(),
          " and x of shape ", x.shape());
  if (traced::on(segment_ids.device()))
    throw Unimplemented(message(kOp,
                                "the number of segments is not known while a step is traced; use "
                                "unsorted_segment_sum(x, segment_ids, num_segments)"),
                        at);
  const Tensor here = segment_ids.to_host();
  std::int64_t last = 0, segments = 0;
  visit_indices(here, [&](const auto* ids, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      require(ids[i] >= last, at, kOp, "expected segments of 0 or more that do not decrease, got ",
              ids[i], " at place ", i, " after ", last);
      last = ids[i];
      segments = last + 1;
    }
  });
  const Shape shape = joined(kOp, Shape({segments}, at, kOp), x.shape(), 1, at);
  Tensor y = scattered(kOp, Tensor(), segment_ids, x, 0, shape, Negative::refused, at);
  if (is_floating(x.dtype()))
    record(kOp, {&x, &segment_ids}, y, [segment_ids](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return gather(dy, segment_ids); });
    });
  return y;
}

}  // namespace lockstep
