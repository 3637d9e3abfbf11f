// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/sort.h>

#include <lockstep/ops/recorder.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>

#include <limits>
#include <numeric>

#include "ops/cuda/kernels.h"
#include "ops/indices.h"
#include "ops/launch.h"
#include "ops/sort_cpu.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

struct Sorting {
  int axis;
  std::int64_t k;  // that many of the sorted elements are kept
  bool descending;
  bool values = true, indices = true;  // wanted
};

// The order of axes in which `axis` and the last one change places.
std::vector<int> swapped(int rank, int axis) {
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(axis)], axes.back());
  return axes;
}

TopK sorted_rows(const char* op, const Tensor& x, const Sorting& how, SourceLocation at) {
  const Device device = common_device(op, {&x}, at);
  const Shape shape = x.shape().with_dim(-1, how.k);
  TopK y;
  if (how.values) y.values = make_result(device, x.dtype(), shape);
  if (how.indices) y.indices = make_result(device, DType::i32, shape);
  const std::int64_t n = x.dim(-1);
  launch(
      op, device, writes(y.values, y.indices), reads(x),
      [n, how](Tensor& values, Tensor& indices, const Tensor& from) {
        cpu::sort_rows(from, n, how.k, how.descending, values, indices);
      },
      [n, how](Tensor& values, Tensor& indices, const Tensor& from) {
        if (n == 0) return;
        cuda::sort_rows(from.dtype(), from.raw_data(),
                        values.defined() ? write<void>(values) : nullptr,
                        indices.defined() ? write<void>(indices) : nullptr, from.num_elements() / n,
                        n, how.k, how.descending, from.device());
      });
  return y;
}

// Not recorded.
TopK sorted(const char* op, const Tensor& x, const Sorting& how, SourceLocation at) {
  require(x.dim(how.axis) <= std::numeric_limits<std::int32_t>::max(), at, op, "axis ", how.axis,
          " of shape ", x.shape(), " is too long to be numbered in i32");
  const RecorderScope unrecorded(nullptr);
  if (traced::on(x.device())) {
    auto [values, indices] = traced::sort(x, how.axis, how.k, how.descending);
    return {std::move(values), std::move(indices)};
  }
  if (how.axis == x.rank() - 1) return sorted_rows(op, x, how, at);
  const std::vector<int> last = swapped(x.rank(), how.axis);
  TopK y = sorted_rows(op, transpose(x, last, at), how, at);
  if (how.values) y.values = transpose(y.values, last, at);
  if (how.indices) y.indices = transpose(y.indices, last, at);
  return y;
}

// Records that the values came from those places of x.
void record_places(const char* op, const Tensor& x, const TopK& y, int axis) {
  if (!is_floating(x.dtype())) return;
  record(op, {&x}, y.values,
         [indices = y.indices, axis, own = x.shape()](const Tensor& dy, GradientSink& sink) {
           if (!sink.wants(0)) return;
           const Tensor numbers = numbers_along("sort", indices, own, axis, SourceLocation{});
           sink.put(0, [&] { return reshape(scatter_add(numbers, dy, own.num_elements()), own); });
         });
}

}  // namespace

Tensor sort(const Tensor& x, const SortOptions& options, SourceLocation at) {
  require_defined("sort", "x", x, at);
  const int axis = checked_axis("sort", options.axis, x.shape(), at);
  const bool descending = options.direction == SortDirection::descending;
  const TopK y = sorted("sort", x, {axis, x.dim(axis), descending, true, recording({&x})}, at);
  record_places("sort", x, y, axis);
  return y.values;
}

Tensor argsort(const Tensor& x, const SortOptions& options, SourceLocation at) {
  require_defined("argsort", "x", x, at);
  const int axis = checked_axis("argsort", options.axis, x.shape(), at);
  const bool descending = options.direction == SortDirection::descending;
  return sorted("argsort", x, {axis, x.dim(axis), descending, false, true}, at).indices;
}

TopK top_k(const Tensor& x, std::int64_t k, SourceLocation at) {
  require_defined("top_k", "x", x, at);
  const int axis = checked_axis("top_k", -1, x.shape(), at);
  require(k >= 0 && k <= x.dim(axis), at, "top_k", "expected a k of 0 to ", x.dim(axis),
          ", the last axis of shape ", x.shape(), ", got ", k);
  TopK y = sorted("top_k", x, {.axis = axis, .k = k, .descending = true}, at);
  record_places("top_k", x, y, axis);
  return y;
}

}  // namespace lockstep
