// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// x with its elements converted to dtype; x itself when it has it. Between all pairs:
//   to floating    rounded to nearest even; too large for f16 becomes infinite
//   to integer     truncated towards zero; out of range becomes the nearest value, NaN becomes 0
//                  (integer to integer wraps around, like static_cast)
//   to bool        whether it is not 0
// The gradient is cast back; it flows between floating dtypes only.
LOCKSTEP_EXPORT Tensor cast(const Tensor& x, DType dtype,
                            SourceLocation at = SourceLocation::current());

// The value of x, through which no gradient flows; no copy.
LOCKSTEP_EXPORT Tensor stop_gradient(const Tensor& x,
                                     SourceLocation at = SourceLocation::current());

}  // namespace lockstep
