// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Reductions of one element type. "runs" reduce each of `outer` contiguous runs of n elements to
// one; "rows" reduce `rows` rows of `cols` to one. n and rows are at least 1 for max and min. Null
// where the type does not offer it.
struct ReduceKernels {
  using Runs = void (*)(const void* x, void* y, std::int64_t outer, std::int64_t n);
  using Rows = void (*)(const void* x, void* y, std::int64_t rows, std::int64_t cols);
  struct Pair {
    Runs runs;
    Rows rows;
  };
  Pair sum, prod, max, min;
};

LOCKSTEP_ISA_TABLE(ReduceKernels, f32_reduce);
LOCKSTEP_ISA_TABLE(ReduceKernels, f64_reduce);
LOCKSTEP_ISA_TABLE(ReduceKernels, i32_reduce);
LOCKSTEP_ISA_TABLE(ReduceKernels, i64_reduce);
LOCKSTEP_ISA_TABLE(ReduceKernels, u8_reduce);

}  // namespace lockstep
