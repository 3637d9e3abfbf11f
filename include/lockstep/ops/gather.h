// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Rows by their numbers: `indices` is i32 or i64 of any shape. InvalidArgument, naming the index
// and where it stands, for one that is negative or beyond the rows.

// Row indices[i...] of x at [i...]: shape indices.shape + x.shape without its first axis. The
// gradient of x is dense: scatter_add.
LOCKSTEP_EXPORT Tensor gather(const Tensor& x, const Tensor& indices,
                              SourceLocation at = SourceLocation::current());

// `rows` rows of zeros, to which updates[i...] is added at indices[i...], in order, so that the
// bits are the same always. The shape of updates begins with that of indices. Of floating dtypes,
// i32 and i64; f16 and bf16 are rounded after each addition.
LOCKSTEP_EXPORT Tensor scatter_add(const Tensor& indices, const Tensor& updates, std::int64_t rows,
                                   SourceLocation at = SourceLocation::current());

// 1 at [i..., indices[i...]], else 0: shape indices.shape + [depth]. As in TensorFlow an index out
// of range gives a row of zeros. Of any numeric dtype; no gradient.
LOCKSTEP_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = DType::f32,
                               SourceLocation at = SourceLocation::current());

}  // namespace lockstep
