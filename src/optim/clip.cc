// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/clip.h>

#include "optim/clip_scale.h"

namespace lockstep::optim {

Tensor clip_scale(std::span<const Tensor> tensors, double norm, SourceLocation at) {
  std::vector<Tensor> defined;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) defined.push_back(tensor);
  const Tensor actual = global_norm(defined, at);
  // The second term is 0, or NaN where the norm is infinite and the first would be 0.
  return norm / maximum(actual, norm) + (actual - actual);
}

std::vector<Tensor> clip_by_global_norm(std::span<const Tensor> tensors, double norm,
                                        SourceLocation at) {
  require(norm > 0, at, "clip_by_global_norm", "expected a norm above 0, got ", norm);
  const Tensor scale = clip_scale(tensors, norm, at);
  std::vector<Tensor> clipped;
  for (const Tensor& tensor : tensors)
    clipped.push_back(tensor.defined() ? tensor * cast(scale, tensor.dtype(), at) : Tensor());
  return clipped;
}

}  // namespace lockstep::optim
