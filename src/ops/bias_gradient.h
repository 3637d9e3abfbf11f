// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// How the gradient passes from y = relu(z + bias) or y = z + bias, a row of channels last, to z and
// to bias: both in one pass over dy. An op, shared by dense() and conv2d().
//
// Puts the gradient of the bias, input `bias` of the op, if it is wanted, and returns that of z: dy
// itself without relu, else dy where y > 0.
Tensor put_bias_gradient(const Tensor& dy, const Tensor& y, bool relu, int bias,
                         GradientSink& sink);

}  // namespace lockstep
