// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

struct CumsumOptions {
  int axis = 0;            // negative ones count from the end
  bool exclusive = false;  // without the element itself: [a, b, c] gives [0, a, a + b]
  bool reverse = false;    // from the end: [a + b + c, b + c, c]
};

// Each element's sum with all before it along an axis. Of floating dtypes, i32 and i64; integers wrap
// around. On CPUs floats are added up in double, one after the other; f16 and bf16 are rounded once.
// Throws InvalidArgument for a scalar, an axis that is out of range and other dtypes.
LOCKSTEP_EXPORT Tensor cumsum(const Tensor& x, const CumsumOptions& options = {},
                              SourceLocation at = SourceLocation::current());

}  // namespace lockstep
