// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/operand.h>

#include "ops/elementwise_kernels.h"
#include "ops/result.h"

namespace lockstep {

// Two operands made ready for a kernel: one dtype, shapes that broadcast, numbers as elements.
struct OperandPair {
  // Throws InvalidArgument, naming `op`, when both are numbers, dtypes differ, shapes do not
  // broadcast, or a number does not fit the other's dtype. The operands must outlive the pair.
  OperandPair(const char* op, const Operand& a, const Operand& b);

  SourceLocation at;
  DType dtype;
  Shape shape_a, shape_b, shape;  // shape: of the result
  const void* data_a;
  const void* data_b;
  Device device;

 private:
  alignas(8) unsigned char number_[8];  // the element of the operand that is a number
};

// The operand as a tensor; a number as a scalar of `dtype`.
Tensor as_tensor(const char* op, const Operand& operand, DType dtype);

// The op of the list, which every function of its name is, with its gradients.
Tensor binary_op(BinaryOp op, const Operand& a, const Operand& b);

}  // namespace lockstep
