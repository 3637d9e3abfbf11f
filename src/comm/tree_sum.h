// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// The canonical order of summation. n values are added along a binary tree over their indices: the
// first p = (largest power of two below n) values form the left subtree, the others the right one,
// and so on down; 5 values give ((0 + 1) + (2 + 3)) + 4. Groups of 2^k consecutive values are
// subtrees, so summing within workers of 2^k replicas first and between workers afterwards gives
// the same bits.
//
// f16 and bf16 are added in float and rounded to 16 bits *at every node*: a partial sum that
// travels between hosts as 16 bits then equals one that never left a register. Integers wrap
// around. Bits do not depend on the instruction set, except in the payload of NaNs.

// Instruction sets that kernels exist for.
enum class SumIsa : std::uint8_t { baseline, avx2, avx512 };

// The widest that this CPU runs.
SumIsa best_sum_isa();

// True for every dtype but bool.
constexpr bool is_summable(DType dtype) { return dtype != DType::boolean; }

// out[i] = tree over k of inputs[k][offset + i], for i < count. `out` may be exactly one of the
// input ranges (inputs[k] + offset), else it overlaps none. Each input is read once. Inputs are not
// empty and need not be aligned.
void tree_sum(DType dtype, std::span<const void* const> inputs, std::int64_t offset, void* out,
              std::int64_t count, SumIsa isa = best_sum_isa());

// data[i] /= divisor, in the dtype's arithmetic (16-bit: in float, rounded once). Floating dtypes
// only.
void divide(DType dtype, void* data, std::int64_t count, int divisor);

}  // namespace lockstep
