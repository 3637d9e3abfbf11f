// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>

#include <cstdint>

#include "ops/binary_list.h"
#include "ops/isa.h"
#include "ops/unary_list.h"

namespace lockstep {

#define LOCKSTEP_NAME(name, Functor) name,
enum class UnaryOp { LOCKSTEP_UNARY_OPS(LOCKSTEP_NAME) count };
enum class BinaryOp { LOCKSTEP_BINARY_OPS(LOCKSTEP_NAME) count };
enum class CompareOp { LOCKSTEP_COMPARE_OPS(LOCKSTEP_NAME) count };
enum class PredicateOp { LOCKSTEP_PREDICATE_OPS(LOCKSTEP_NAME) count };
#undef LOCKSTEP_NAME

// A block of rows x cols results, contiguous in the output. Along a row an operand advances by one
// element or, where its col flag is false, stays; between rows it advances by its row stride.
struct BinaryBlock {
  std::int64_t rows, cols;
  std::int64_t a_row, b_row;
  bool a_col, b_col;  // not both false unless cols is 1
};

struct UnaryKernel {
  void (*forward)(const void* x, void* y, std::int64_t n);
  // dx = dy * derivative(kept); the forward op says what is kept. Null where no gradient flows.
  void (*gradient)(const void* dy, const void* kept, void* dx, std::int64_t n);
};
// What gradients of binary ops read. Undefined tensors of BinaryRule are null here.
struct BinaryGradientInputs {
  const void *dy, *a, *b, *y;
  bool both_move;  // else the operand whose gradient is not wanted is one element
};
using BinaryGradientKernel = void (*)(const BinaryGradientInputs& from, void* dx, std::int64_t n);
using PredicateKernel = void (*)(const void* x, bool* y, std::int64_t n);
using BinaryKernel = void (*)(const void* a, const void* b, void* y, const BinaryBlock& block);

// All elementwise kernels of one element type, null where an op is not offered for it. Outputs do
// not overlap inputs.
struct ElementwiseKernels {
  UnaryKernel unary[static_cast<int>(UnaryOp::count)];
  BinaryKernel binary[static_cast<int>(BinaryOp::count)];
  // Of a and of b, of dy's shape each; null also where the gradient is as fast by ops (AsOps).
  BinaryGradientKernel binary_gradient[static_cast<int>(BinaryOp::count)][2];
  BinaryKernel compare[static_cast<int>(CompareOp::count)];  // y: bool
  PredicateKernel predicate[static_cast<int>(PredicateOp::count)];
  // y = minimum(maximum(x, *low), *high).
  void (*clamp)(const void* x, const void* low, const void* high, void* y, std::int64_t n);
};

LOCKSTEP_ISA_TABLE(ElementwiseKernels, f32_elementwise);
LOCKSTEP_ISA_TABLE(ElementwiseKernels, f64_elementwise);
LOCKSTEP_ISA_TABLE(ElementwiseKernels, i32_elementwise);
LOCKSTEP_ISA_TABLE(ElementwiseKernels, i64_elementwise);
LOCKSTEP_ISA_TABLE(ElementwiseKernels, u8_elementwise);

}  // namespace lockstep
