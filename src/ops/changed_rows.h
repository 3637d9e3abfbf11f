// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// How a row of values changes the row that its index names.
enum class RowChange { add, sub, mul, div, min, max, update };

// x with its rows changed by `slices`, of x's shape and dtype, one after the other. Not recorded. On
// the host but for add and sub: Unimplemented in a traced step. Throws InvalidArgument for slices that
// do not fit, for indices outside, and for integers divided by 0.
Tensor changed_rows(const char* op, RowChange change, const Tensor& x, const IndexedSlices& slices,
                    SourceLocation at);

}  // namespace lockstep
