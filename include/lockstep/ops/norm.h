// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>

namespace lockstep {

// (x - mean) / sqrt(variance + epsilon) * scale + offset, where mean and variance (the mean square of
// x - mean, not corrected for the count) are taken over some axes of x; which ones is all that the
// functions differ in.
//
// x is of a floating dtype, 16 bits are computed in float and rounded once. scale and offset may be
// undefined: 1 and 0; otherwise they have the dtype of x, or f32 beside an x of 16 bits. An x without
// elements gives such a result. All have gradients for all arguments, of the second order, too. Each
// throws InvalidArgument, naming both shapes or dtypes, for what does not fit, and for an epsilon
// below 0. Where the device has no kernels for this, the result is composed of other ops.

struct LayerNormOptions {
  int axis = -1;  // the first of the axes that are normalised together, up to the last
  double epsilon = 1e-3;
};

// Each row by itself (arXiv:1607.06450), of all axes from options.axis on, whose shape scale and
// offset have.
LOCKSTEP_EXPORT Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                  const LayerNormOptions& options = {},
                                  SourceLocation at = SourceLocation::current());

struct RmsNormOptions {
  int axis = -1;
  double epsilon = 1e-6;
};

// x / sqrt(mean(x^2) + epsilon) * scale, otherwise as layer_norm (arXiv:1910.07467).
LOCKSTEP_EXPORT Tensor rms_norm(const Tensor& x, const Tensor& scale,
                                const RmsNormOptions& options = {},
                                SourceLocation at = SourceLocation::current());

struct GroupNormOptions {
  std::int64_t groups = 32;  // divides the channels
  double epsilon = 1e-3;
};

// Of x [batch, .., channels], each group of neighbouring channels of each example by itself
// (arXiv:1803.08494); scale and offset [channels]. With a group per channel: instance norm.
LOCKSTEP_EXPORT Tensor group_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                  const GroupNormOptions& options = {},
                                  SourceLocation at = SourceLocation::current());

struct BatchNormOptions {
  double epsilon = 1e-3;
};

// What training needs: the normalised tensor, and mean and variance [channels] of this batch in the
// dtype computed in (f32 for 16 bits), for moving averages. Both are 0 for no rows.
struct BatchNormResult {
  Tensor y, mean, variance;
};

// Of x [.., channels], each channel over all other axes (arXiv:1502.03167); scale and offset
// [channels]. The replica's own rows only: gradients flow through mean and variance as well.
LOCKSTEP_EXPORT BatchNormResult batch_norm(const Tensor& x, const Tensor& scale,
                                           const Tensor& offset,
                                           const BatchNormOptions& options = {},
                                           SourceLocation at = SourceLocation::current());

// The same with given mean and variance [channels], such as moving averages; TensorFlow's
// batch_normalization. Their dtype is as that of scale.
LOCKSTEP_EXPORT Tensor batch_norm_inference(const Tensor& x, const Tensor& mean,
                                            const Tensor& variance, const Tensor& scale,
                                            const Tensor& offset,
                                            const BatchNormOptions& options = {},
                                            SourceLocation at = SourceLocation::current());

}  // namespace lockstep
