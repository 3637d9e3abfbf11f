// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <initializer_list>
#include <optional>
#include <vector>

namespace lockstep {

// Rearranging elements, of every dtype; all have gradients. Axes may be negative, counted from the
// end. InvalidArgument, naming the shapes, for whatever does not fit.

// Views: no copy, the result shares the memory of x.
LOCKSTEP_EXPORT Tensor reshape(const Tensor& x, const Shape& shape,
                               SourceLocation at = SourceLocation::current());
// One extent may be -1: what is left.
LOCKSTEP_EXPORT Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents,
                               SourceLocation at = SourceLocation::current());
// Inserts an axis of extent 1 at `axis` of the result.
LOCKSTEP_EXPORT Tensor expand_dims(const Tensor& x, int axis,
                                   SourceLocation at = SourceLocation::current());
// Removes axes of extent 1: those named, or all.
LOCKSTEP_EXPORT Tensor squeeze(const Tensor& x, const std::vector<int>& axes = {},
                               SourceLocation at = SourceLocation::current());
// One axis in place of `axis` and all after it: [n, h, w, c] from axis 1 is [n, h w c].
LOCKSTEP_EXPORT Tensor flatten_from(const Tensor& x, int axis = 1,
                                    SourceLocation at = SourceLocation::current());

// Axis i of the result is axis permutation[i] of x; without a permutation the order is reversed.
LOCKSTEP_EXPORT Tensor transpose(const Tensor& x, const std::vector<int>& permutation = {},
                                 SourceLocation at = SourceLocation::current());

// x repeated along axes that it lacks or of which it has extent 1, as NumPy broadcasts.
LOCKSTEP_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape,
                                    SourceLocation at = SourceLocation::current());

// Tensors of one dtype after each other along an axis; other extents must agree. At least one.
LOCKSTEP_EXPORT Tensor concat(const std::vector<Tensor>& parts, int axis,
                              SourceLocation at = SourceLocation::current());
// Tensors of one dtype and shape along a new axis. At least one.
LOCKSTEP_EXPORT Tensor stack(const std::vector<Tensor>& parts, int axis = 0,
                             SourceLocation at = SourceLocation::current());
// The inverse of stack: the tensors along an axis, without it.
LOCKSTEP_EXPORT std::vector<Tensor> unstack(const Tensor& x, int axis = 0,
                                            SourceLocation at = SourceLocation::current());
// The inverse of concat: parts of the given extents, which add up to the axis', or so many equal
// ones.
LOCKSTEP_EXPORT std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& extents,
                                          int axis, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT std::vector<Tensor> split(const Tensor& x, int parts, int axis,
                                          SourceLocation at = SourceLocation::current());

// The box of `extents` elements from `begin` on, one number for each axis; an extent of -1 reaches
// to the axis' end. A box of whole rows is a view.
LOCKSTEP_EXPORT Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin,
                             const std::vector<std::int64_t>& extents,
                             SourceLocation at = SourceLocation::current());

// begin:end:stride along one axis, as NumPy's: negative places count from the end, those beyond the
// axis are moved to its ends, absent ones stand for the ends that the stride comes from and goes to.
struct SliceRange {
  std::optional<std::int64_t> begin = {}, end = {};
  std::int64_t stride = 1;  // not 0; negative: backwards
};
// x[begin:end:stride, ...], a range for each of the first axes; the others stay whole.
LOCKSTEP_EXPORT Tensor strided_slice(const Tensor& x, const std::vector<SliceRange>& ranges,
                                     SourceLocation at = SourceLocation::current());
// Zeros of `shape`, of which strided_slice gives dy for the same ranges: its gradient.
LOCKSTEP_EXPORT Tensor strided_slice_gradient(const Tensor& dy, const Shape& shape,
                                              const std::vector<SliceRange>& ranges,
                                              SourceLocation at = SourceLocation::current());

// The elements along these axes in reverse.
LOCKSTEP_EXPORT Tensor reverse(const Tensor& x, const std::vector<int>& axes,
                               SourceLocation at = SourceLocation::current());
// Moves elements `shifts` places towards the axis' end, those that fall out to its beginning; an
// axis that is named more than once is shifted by the sum.
LOCKSTEP_EXPORT Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts,
                            const std::vector<int>& axes,
                            SourceLocation at = SourceLocation::current());
// x so many times after itself along each axis.
LOCKSTEP_EXPORT Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples,
                            SourceLocation at = SourceLocation::current());

// What pad surrounds a tensor with. Of [1, 2, 3], two before and after:
//   constant   v v 1 2 3 v v
//   reflect    3 2 1 2 3 2 1   at most one less than the axis has
//   symmetric  2 1 1 2 3 3 2   at most as many as the axis has
enum class PadMode { constant, reflect, symmetric };
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of constant; InvalidArgument where the dtype does not have it
};
// x with so many elements before and after it along each axis.
LOCKSTEP_EXPORT Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before,
                           const std::vector<std::int64_t>& after, const PadOptions& options = {},
                           SourceLocation at = SourceLocation::current());

}  // namespace lockstep
