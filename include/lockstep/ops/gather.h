// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Reading elements by their numbers: `indices` is i32 or i64. On CPUs an index that is negative or
// beyond its axis is InvalidArgument that names the op, the index, its place among the indices and
// the bound. Where nobody can be told it gives zeros (GPUs) or the nearest element (traced steps).
// Of every dtype; the gradient adds up what was read more than once.

// Element [o..., i..., k...] is x[o..., indices[i...], k...]: indices in place of an axis of x.
LOCKSTEP_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0,
                              SourceLocation at = SourceLocation::current());

// The last axis of indices holds the coordinates of an element of x, or of a block where they are
// fewer than x has axes: shape indices.shape without its last axis + x.shape without the first
// ones.
LOCKSTEP_EXPORT Tensor gather_nd(const Tensor& x, const Tensor& indices,
                                 SourceLocation at = SourceLocation::current());

// Indices along one axis, for each place along the others: those of argsort and top_k. The shapes
// agree in the other axes.
LOCKSTEP_EXPORT Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1,
                                       SourceLocation at = SourceLocation::current());

// Rows of a table of learned vectors: gather along the first axis. Both have gradients that name the
// rows that were read (IndexedSlices), for consumers that ask for them, see GradientOptions; others
// get a dense tensor.
LOCKSTEP_EXPORT Tensor embedding_lookup(const Tensor& table, const Tensor& ids,
                                        SourceLocation at = SourceLocation::current());

// 1 at [i..., indices[i...]], else 0: shape indices.shape + [depth]. As in TensorFlow an index out
// of range gives a row of zeros. Of every dtype; no gradient.
LOCKSTEP_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = DType::f32,
                               SourceLocation at = SourceLocation::current());

// The coordinates of the elements that are true, in row-major order: i64 [count, rank]. Waits for
// the condition, as the shape depends on it; hence Unimplemented in a traced step, where
// select(condition, a, b) serves. No gradient.
LOCKSTEP_EXPORT Tensor where(const Tensor& condition,
                             SourceLocation at = SourceLocation::current());

}  // namespace lockstep
