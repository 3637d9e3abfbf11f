// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// What dense() and conv2d() apply to their result. relu is part of their kernels, some of which make
// 0 of NaN, as TensorFlow's fused ones do; the others are the ops of that name (elementwise.h).
enum class Activation { none, relu, tanh, sigmoid, gelu, gelu_tanh, silu, elu, softplus };

// x, of a floating dtype, with the activation applied. InvalidArgument for other dtypes.
LOCKSTEP_EXPORT Tensor activate(const Tensor& x, Activation activation,
                                SourceLocation at = SourceLocation::current());

}  // namespace lockstep
