// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/tensor/tensor.h>

#include <numeric>
#include <utility>
#include <vector>

namespace lockstep {

// The order of x's axes in which `axis`, which may count from the end, and the first have changed
// places: for transpose, there and back. Throws InvalidArgument for an axis that x has not.
inline std::vector<int> swapped_axes(const char* op, const Tensor& x, int axis, SourceLocation at) {
  require(x.defined() && axis >= -x.rank() && axis < x.rank(), at, op,
          "expected a tensor that has axis ", axis, ", got ",
          x.defined() ? x.to_string() : "an undefined one");
  std::vector<int> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis)]);
  return order;
}

}  // namespace lockstep
