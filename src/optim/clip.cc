// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/clip.h>

#include "optim/clip_scale.h"

namespace lockstep::optim {

Tensor norm_of(std::span<const Tensor> tensors, const Tensor& scale, SourceLocation at) {
  std::vector<Tensor> defined;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) defined.push_back(tensor);
  const Tensor norm = cast(global_norm(defined, at), DType::f64, at);
  return scale.defined() ? norm * scale : norm;
}

Tensor clipped_scale(const Tensor& norm, double limit, const Tensor& scale) {
  // The second term is 0, or NaN where the norm is infinite and the first would be 0.
  const Tensor clipped = limit / maximum(norm, limit) + (norm - norm);
  return scale.defined() ? clipped * scale : clipped;
}

Tensor clipped_by_value(const Tensor& gradient, double limit, const Tensor& scale) {
  if (!scale.defined()) return clamp(gradient, -limit, limit);
  const Tensor high = cast(limit / scale, gradient.dtype());
  return clamp(gradient, -high, high);
}

std::vector<Tensor> clip_by_global_norm(std::span<const Tensor> tensors, double norm,
                                        SourceLocation at) {
  require(norm > 0, at, "clip_by_global_norm", "expected a norm above 0, got ", norm);
  const Tensor scale = clipped_scale(norm_of(tensors, {}, at), norm, {});
  std::vector<Tensor> clipped;
  for (const Tensor& tensor : tensors)
    clipped.push_back(tensor.defined() ? tensor * cast(scale, tensor.dtype(), at) : Tensor());
  return clipped;
}

}  // namespace lockstep::optim
