// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/operand.h>

namespace lockstep {

// Arithmetic element by element. All of it has gradients where a formula is differentiable; f16 and
// bf16 are computed in float and rounded once. float32 results have the same bits under every
// instruction set (NaNs: some NaN) but for pow, sin and cos of arguments beyond 2^20, which like
// all of float64 come from the C library. Empty tensors give empty results. InvalidArgument is
// thrown for an undefined tensor or a dtype that is not offered; the message names it.

// Any floating dtype, i32 and i64; integers wrap around.
LOCKSTEP_EXPORT Tensor neg(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor abs(const Tensor& x, SourceLocation at = SourceLocation::current());
// -1, 0 or 1; NaN for NaN. No gradient flows through it.
LOCKSTEP_EXPORT Tensor sign(const Tensor& x, SourceLocation at = SourceLocation::current());
// max(x, 0), whose gradient at 0 is 0; NaN for NaN.
LOCKSTEP_EXPORT Tensor relu(const Tensor& x, SourceLocation at = SourceLocation::current());
// x * x; also u8.
LOCKSTEP_EXPORT Tensor square(const Tensor& x, SourceLocation at = SourceLocation::current());

// Floating dtypes only, from here on. Out of a function's domain the result is NaN, as in <cmath>.
LOCKSTEP_EXPORT Tensor sqrt(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor rsqrt(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor reciprocal(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor exp(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor expm1(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor log(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor log1p(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor sin(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor cos(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor tanh(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor erf(const Tensor& x, SourceLocation at = SourceLocation::current());
// 1 / (1 + exp(-x))
LOCKSTEP_EXPORT Tensor sigmoid(const Tensor& x, SourceLocation at = SourceLocation::current());
// x (1 + erf(x / sqrt 2)) / 2, the exact form (arXiv:1606.08415).
LOCKSTEP_EXPORT Tensor gelu(const Tensor& x, SourceLocation at = SourceLocation::current());
// To an integer below, above, or nearest (halves to the even one, as NumPy). No gradient flows
// through.
LOCKSTEP_EXPORT Tensor floor(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor ceil(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor round(const Tensor& x, SourceLocation at = SourceLocation::current());

// Of two operands, broadcast to one shape as NumPy does; gradients are summed back. One of them may
// be a number, which takes the other's dtype (InvalidArgument when an integer dtype cannot hold
// it). InvalidArgument when shapes do not broadcast, or for two tensors of different dtypes. Any
// floating or integer dtype; integers wrap around.
LOCKSTEP_EXPORT Tensor add(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor sub(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor mul(const Operand& a, const Operand& b);
// NaN where either is; where both are equal the gradient goes to a, as in TensorFlow.
LOCKSTEP_EXPORT Tensor maximum(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor minimum(const Operand& a, const Operand& b);
// Floating dtypes only: cast integers first.
LOCKSTEP_EXPORT Tensor div(const Operand& a, const Operand& b);
// a to the power b. The gradient of b is 0 where a is not positive, as in TensorFlow.
LOCKSTEP_EXPORT Tensor pow(const Operand& a, const Operand& b);

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator-(const Operand& x) { return neg(x.tensor(), x.location()); }

}  // namespace lockstep
