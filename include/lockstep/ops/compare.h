// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/operand.h>

namespace lockstep {

// Comparisons and what is made of them: boolean tensors, which have no gradient. Operands
// broadcast, a number takes the other's dtype, and two tensors must agree in theirs (see
// elementwise.h). Every dtype; comparisons with NaN are false but for not_equal.
LOCKSTEP_EXPORT Tensor equal(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor not_equal(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor less(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor less_equal(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor greater(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor greater_equal(const Operand& a, const Operand& b);

// Of boolean tensors; InvalidArgument for another dtype.
LOCKSTEP_EXPORT Tensor logical_and(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor logical_or(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor logical_xor(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor logical_not(const Tensor& x, SourceLocation at = SourceLocation::current());

// Neither infinite nor NaN; not a number; infinite, of either sign. Of any numeric dtype: integers
// are all finite.
LOCKSTEP_EXPORT Tensor is_finite(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor is_nan(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor is_inf(const Tensor& x, SourceLocation at = SourceLocation::current());

// a where the boolean `condition` is true, else b; all three broadcast. What is not selected does
// not matter, be it NaN, neither for the result nor for the gradient. a and b are of one dtype,
// whichever, and one of them may be a number.
LOCKSTEP_EXPORT Tensor select(const Tensor& condition, const Operand& a, const Operand& b);

// minimum(maximum(x, low), high): the gradient reaches x where low <= x <= high.
LOCKSTEP_EXPORT Tensor clamp(const Tensor& x, const Operand& low, const Operand& high);

}  // namespace lockstep
