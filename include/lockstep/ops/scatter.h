// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Adding elements where indices, i32 or i64, say. What goes to one place is added in the order of
// the indices, so that the bits are the same always; f16 and bf16 are rounded after each addition
// (in traced steps once). Of floating dtypes, i32 (wrapping around) and i64. On CPUs an index out
// of range is InvalidArgument that names the op, the index, its place and the bound; where nobody
// can be told (GPUs, traced steps) it adds nothing.

// Zeros of `rows` along an axis, to which updates[o..., i..., k...] is added at
// [o..., indices[i...], k...]: the gradient of gather.
LOCKSTEP_EXPORT Tensor scatter_add(const Tensor& indices, const Tensor& updates, std::int64_t rows,
                                   int axis = 0, SourceLocation at = SourceLocation::current());

// Zeros of `shape`, to which updates[i...] is added at the coordinates indices[i..., :], as
// gather_nd reads them.
LOCKSTEP_EXPORT Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape,
                                  SourceLocation at = SourceLocation::current());
// The same added to x; TensorFlow's tensor_scatter_nd_add.
LOCKSTEP_EXPORT Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices,
                                          const Tensor& updates,
                                          SourceLocation at = SourceLocation::current());

// All rows, those that are not named zero. InvalidArgument where the members do not fit together.
LOCKSTEP_EXPORT Tensor to_dense(const IndexedSlices& slices,
                                SourceLocation at = SourceLocation::current());
// The same slices with each row named once, in ascending order, by i64 indices: rows that were named
// more than once are added up. Indices are waited for; Unimplemented in a traced step. Not recorded.
LOCKSTEP_EXPORT IndexedSlices coalesce(const IndexedSlices& slices,
                                       SourceLocation at = SourceLocation::current());

// Row r is the sum of the rows of x whose segment is r; `segment_ids` has the shape that x.shape
// begins with. A row of a negative segment is left out, a segment without rows is zero.
LOCKSTEP_EXPORT Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segment_ids,
                                            std::int64_t num_segments,
                                            SourceLocation at = SourceLocation::current());
// The same for a list of segments, one per row of x, that does not decrease and starts at 0 or more
// (else InvalidArgument): the last one tells how many there are. It is waited for; Unimplemented in
// a traced step.
LOCKSTEP_EXPORT Tensor segment_sum(const Tensor& x, const Tensor& segment_ids,
                                   SourceLocation at = SourceLocation::current());

}  // namespace lockstep
