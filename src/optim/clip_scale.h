// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <span>

namespace lockstep::optim {

// What to multiply tensors with so that their common 2-norm is at most `norm`, an f32 scalar; NaN
// when it is not finite. Undefined tensors are passed over.
Tensor clip_scale(std::span<const Tensor> tensors, double norm, SourceLocation at);

}  // namespace lockstep::optim
