// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <functional>

namespace lockstep::nn {

// Makes the first value of a layer's variable. Random ones draw from the thread's RandomState: in a
// strategy's scope the strategy's, so that its seed decides.
using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;

// The fans of a kernel [.., in, out] are in and out, times the extents before them: [in, out] of a
// dense layer, [height, width, in, out] of a convolution. A shape of rank 1 counts as both.

// Uniform in [-limit, limit], limit = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
LOCKSTEP_EXPORT Tensor glorot_uniform(const Shape& shape, DType dtype = DType::f32);
// Normal with standard deviation sqrt(2 / fan_in) (He et al., arXiv:1502.01852), truncated at two
// standard deviations of the normal it is cut from, as Keras has it.
LOCKSTEP_EXPORT Tensor he_normal(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor zeros(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor ones(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Initializer constant(double value);

}  // namespace lockstep::nn
