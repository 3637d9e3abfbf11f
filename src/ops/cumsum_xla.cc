// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {

// In log2(n) steps: after each, an element is the sum of twice as many.
Tensor cumsum(const Tensor& x, int axis, bool exclusive, bool reverse) {
  using hlo::Expr;
  const std::int64_t n = x.dim(axis);
  const std::vector<std::int64_t> none(static_cast<std::size_t>(x.rank()), 0);
  const auto shifted = [&](const Expr& values, std::int64_t by) {
    std::vector<std::int64_t> in = none, out = none;
    in[static_cast<std::size_t>(axis)] = by;
    out[static_cast<std::size_t>(axis)] = -by;
    return reverse ? hlo::pad(values, out, in, none) : hlo::pad(values, in, out, none);
  };
  Expr sum = hlo::wide_operand("cumsum", x);
  if (exclusive && n > 0) sum = shifted(sum, 1);
  for (std::int64_t step = 1; step < n; step *= 2) sum = sum + shifted(sum, step);
  return hlo::tensor(sum, x.dtype());
}

}  // namespace lockstep::traced
