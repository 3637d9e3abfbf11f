// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <span>

namespace lockstep::optim {

// Of gradients that are to be multiplied with `scale` (a scalar, undefined: 1) before they are clipped.
// All are f64 scalars but for clipped_by_value.

// Their common 2-norm, as scaled. Undefined tensors are passed over.
Tensor norm_of(std::span<const Tensor> tensors, const Tensor& scale, SourceLocation at);
// What to multiply them with instead, so that a norm is at most `limit`; NaN when it is not finite.
Tensor clipped_scale(const Tensor& norm, double limit, const Tensor& scale);
// Each element so that the scaled one is in [-limit, limit]; not scaled yet.
Tensor clipped_by_value(const Tensor& gradient, double limit, const Tensor& scale);

}  // namespace lockstep::optim
