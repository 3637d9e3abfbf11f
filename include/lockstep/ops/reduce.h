// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <vector>

namespace lockstep {

// Which axes a reduction removes: negative ones count from the end, none means all. With keep_dims
// they stay as axes of extent 1, so that the result broadcasts against the argument.
struct ReduceOptions {
  std::vector<int> axes = {};
  bool keep_dims = false;
};

// All throw InvalidArgument for an axis that is out of range or named twice, and for other dtypes
// than those named. f16 and bf16 are reduced in float and rounded once. Sums run in one fixed
// order, the same under every instruction set: 64 interleaved lanes over blocks of a few thousand
// elements, the blocks' sums added in double. Several groups of axes are reduced one after the
// other, the innermost first.

// Of floating dtypes, i32 and i64; integers are exact and wrap around. Nothing sums to 0.
LOCKSTEP_EXPORT Tensor sum(const Tensor& x, const ReduceOptions& options = {},
                           SourceLocation at = SourceLocation::current());
// Of floating dtypes: sum / count. NaN of nothing.
LOCKSTEP_EXPORT Tensor mean(const Tensor& x, const ReduceOptions& options = {},
                            SourceLocation at = SourceLocation::current());

// Of floating dtypes, i32 and i64, which wrap around. The product of nothing is 1. The gradient is
// right where elements are 0, too.
LOCKSTEP_EXPORT Tensor prod(const Tensor& x, const ReduceOptions& options = {},
                            SourceLocation at = SourceLocation::current());
// The mean of (x - mean(x))^2, biased: divided by the count, as TensorFlow's; and its square
// root, whose gradient is NaN where the variance is 0. Of floating dtypes; NaN of nothing.
LOCKSTEP_EXPORT Tensor variance(const Tensor& x, const ReduceOptions& options = {},
                                SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor stddev(const Tensor& x, const ReduceOptions& options = {},
                              SourceLocation at = SourceLocation::current());
// log(sum(exp(x))) of floating dtypes, which does not overflow; minus infinity of nothing.
LOCKSTEP_EXPORT Tensor logsumexp(const Tensor& x, const ReduceOptions& options = {},
                                 SourceLocation at = SourceLocation::current());

// Of floating and integer dtypes; NaN where one element is. InvalidArgument for the maximum of
// nothing. The gradient is divided equally among elements that tie, as in TensorFlow.
LOCKSTEP_EXPORT Tensor max(const Tensor& x, const ReduceOptions& options = {},
                           SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor min(const Tensor& x, const ReduceOptions& options = {},
                           SourceLocation at = SourceLocation::current());

// Of booleans; of nothing, any is false and all is true.
LOCKSTEP_EXPORT Tensor any(const Tensor& x, const ReduceOptions& options = {},
                           SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor all(const Tensor& x, const ReduceOptions& options = {},
                           SourceLocation at = SourceLocation::current());

// Index of the largest, or least, element along an axis, which is removed: i64; the first of equal
// ones; a NaN exceeds all others. InvalidArgument where the axis is empty and the result is not.
LOCKSTEP_EXPORT Tensor argmax(const Tensor& x, int axis = -1,
                              SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor argmin(const Tensor& x, int axis = -1,
                              SourceLocation at = SourceLocation::current());

// The sum of x over the axes along which `shape` was broadcast to x's shape: the gradient of
// broadcasting. x itself when the shapes are equal. InvalidArgument when `shape` does not broadcast
// so.
LOCKSTEP_EXPORT Tensor sum_to_shape(const Tensor& x, const Shape& shape,
                                    SourceLocation at = SourceLocation::current());

}  // namespace lockstep
