// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/activation.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

struct MatmulOptions {
  bool transpose_a = false;  // a holds [.., k, m]
  bool transpose_b = false;  // b holds [.., n, k]
};

// The matrix products of a [.., m, k] and b [.., k, n]: [.., m, n]. Axes before the last two are a
// batch and broadcast as NumPy's. dtypes: floating, i32, i64, the same on both sides; 16-bit floats
// are summed in float and rounded once. Any extent may be zero; with k = 0 the products are zero.
// Throws InvalidArgument, naming both shapes, for a rank below 2, other dtypes, extents k that
// differ or batch axes that do not broadcast.
LOCKSTEP_EXPORT Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {},
                              SourceLocation at = SourceLocation::current());

// activation(x w + bias), a fully connected layer in one pass: x [.., in], w [in, out], bias [out]
// or undefined; the result is [.., out]. Floating dtypes, the same for all. Throws InvalidArgument,
// naming the shapes, when they do not fit.
LOCKSTEP_EXPORT Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias,
                             Activation activation = Activation::none,
                             SourceLocation at = SourceLocation::current());

}  // namespace lockstep
