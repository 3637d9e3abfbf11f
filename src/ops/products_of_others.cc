// SPDX-License-Identifier: Apache-2.0
#include "ops/products_of_others.h"

#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <vector>

namespace lockstep {
namespace {

// Whether there is neither 0 nor NaN; not known where it would take a copy from a device.
bool known_without_zeros(const Tensor& products) {
  return products.device().is_host() && all(greater(abs(products), 0)).item<bool>();
}

// The product of those that are not 0, divided by each; where there is one 0 only its own is left.
Tensor by_division(const Tensor& x, const std::vector<int>& axes) {
  const ReduceOptions options{.axes = axes, .keep_dims = true};
  if (const Tensor product = prod(x, options); known_without_zeros(product)) return product / x;
  const Tensor zero = equal(x, 0);
  const Tensor zeros = sum(cast(zero, x.dtype()), options);
  const Tensor rest = select(zero, 1, x);
  const Tensor product = prod(rest, options);
  const Tensor only = logical_and(zero, equal(zeros, 1));
  return select(equal(zeros, 0), product / rest, select(only, product, 0));
}

// The product of all elements before each one of a row, or after it; [rows, n]. log2(n) products.
Tensor products_before(const Tensor& x, bool after) {
  const std::int64_t rows = x.dim(0), n = x.dim(1);
  const auto shifted = [&](const Tensor& values, std::int64_t by) {
    const Tensor one = full({rows, by}, 1, x.dtype());
    const Tensor rest = slice(values, {0, after ? by : 0}, {rows, n - by});
    return after ? concat({rest, one}, 1) : concat({one, rest}, 1);
  };
  Tensor product = shifted(x, 1);
  for (std::int64_t step = 1; step < n; step *= 2) product = product * shifted(product, step);
  return product;
}

// Without a division, which has the wrong gradient where a factor is 0.
Tensor by_scans(const Tensor& x, const std::vector<int>& kept, const std::vector<int>& axes) {
  std::vector<int> order = kept;
  order.insert(order.end(), axes.begin(), axes.end());
  std::vector<int> back(order.size());
  std::int64_t n = 1;
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  for (const int axis : axes) n *= x.dim(axis);
  const Tensor moved = transpose(x, order);
  const Tensor rows = reshape(moved, {x.num_elements() / n, n});
  const Tensor others = products_before(rows, false) * products_before(rows, true);
  return transpose(reshape(others, moved.shape()), back);
}

}  // namespace

Tensor products_of_others(const Tensor& x, const bool (&reduced)[Shape::kMaxRank]) {
  std::vector<int> kept, axes;
  for (int axis = 0; axis < x.rank(); ++axis) (reduced[axis] ? axes : kept).push_back(axis);
  if (x.num_elements() == 0) return stop_gradient(x);
  if (axes.empty()) return full(x.shape(), 1, x.dtype());
  return recording({&x}) ? by_scans(x, kept, axes) : by_division(x, axes);
}

}  // namespace lockstep
