// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/base/shape.h>

#include <cstdint>

// Reductions of host memory. Callers have checked dtypes and that max and min have elements.
namespace lockstep::cpu {

enum class Reduction { sum, prod, max, min };

// y receives, in row-major order of the kept axes, the reduction over the axes where `reduced` is
// true, and of floating dtypes what is left of it after division by `divisor`.
void reduce(Reduction op, DType dtype, const void* x, void* y, const Shape& shape,
            const bool (&reduced)[Shape::kMaxRank], std::int64_t divisor);

// y[o, i] = the first j with the largest x[o, j, i] or, unless `largest`, the least; NaN leads.
void arg_extreme(bool largest, DType dtype, const void* x, std::int64_t* y, std::int64_t outer,
                 std::int64_t n, std::int64_t inner);

}  // namespace lockstep::cpu
