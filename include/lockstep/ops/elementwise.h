// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/operand.h>

namespace lockstep {

// Arithmetic element by element, with gradients where a formula is differentiable. f16 and bf16 are
// computed in float and rounded once. float32 results have the same bits under every instruction
// set (NaNs: some NaN), but for sin, cos and tan beyond 2^20, which like all of float64 come from
// the C library. Empty tensors give empty results. InvalidArgument for an undefined tensor or a
// dtype that is not offered; the message names it.

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
LOCKSTEP_EXPORT Tensor tan(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor atan(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor tanh(const Tensor& x, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor erf(const Tensor& x, SourceLocation at = SourceLocation::current());
// 1 / (1 + exp(-x))
LOCKSTEP_EXPORT Tensor sigmoid(const Tensor& x, SourceLocation at = SourceLocation::current());
// x (1 + erf(x / sqrt 2)) / 2, the exact form (arXiv:1606.08415).
LOCKSTEP_EXPORT Tensor gelu(const Tensor& x, SourceLocation at = SourceLocation::current());
// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, its approximation (TensorFlow's approximate).
LOCKSTEP_EXPORT Tensor gelu_tanh(const Tensor& x, SourceLocation at = SourceLocation::current());
// x sigmoid(x), also known as swish.
LOCKSTEP_EXPORT Tensor silu(const Tensor& x, SourceLocation at = SourceLocation::current());
// log(1 + exp(x)), which does not overflow.
LOCKSTEP_EXPORT Tensor softplus(const Tensor& x, SourceLocation at = SourceLocation::current());
// x where it is positive, else exp(x) - 1.
LOCKSTEP_EXPORT Tensor elu(const Tensor& x, SourceLocation at = SourceLocation::current());
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
LOCKSTEP_EXPORT Tensor squared_difference(const Operand& a, const Operand& b);
// The remainder a - b floor(a / b), which has the sign of b (TensorFlow's floormod, Python's %).
// Where b is 0: NaN, of integers 0 as NumPy's. f64 and quotients of 2^28 and more call the C library.
LOCKSTEP_EXPORT Tensor mod(const Operand& a, const Operand& b);
// NaN where either is; where both are equal the gradient goes to a, as in TensorFlow.
LOCKSTEP_EXPORT Tensor maximum(const Operand& a, const Operand& b);
LOCKSTEP_EXPORT Tensor minimum(const Operand& a, const Operand& b);
// Floating dtypes only: cast integers first.
LOCKSTEP_EXPORT Tensor div(const Operand& a, const Operand& b);
// x where it is positive, else slope x: slopes may be a tensor, with a gradient of its own.
LOCKSTEP_EXPORT Tensor leaky_relu(const Operand& x, const Operand& slope = 0.2);
// The angle of the point (b, a), in [-pi, pi].
LOCKSTEP_EXPORT Tensor atan2(const Operand& a, const Operand& b);
// a to the power b, as in C. The gradient of b is 0 where a is not positive, as in TensorFlow.
LOCKSTEP_EXPORT Tensor pow(const Operand& a, const Operand& b);

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator-(const Operand& x) { return neg(x.tensor(), x.location()); }

}  // namespace lockstep
