// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update.h>
#include <lockstep/tensor/tensor.h>

#include <span>
#include <vector>

namespace lockstep::optim {

// How an optimizer limits gradients, after they were summed over the replicas: at most one of
// these, 0 stands for no limit. A gradient whose norm is to be limited and is not finite becomes
// all NaN.
struct Clip {
  double value = 0;        // each element to [-value, value]
  double norm = 0;         // each variable's gradient to this 2-norm
  double global_norm = 0;  // all gradients together to this 2-norm
};

using lockstep::global_norm;  // ops/update.h

// The tensors times norm / max(norm, their global norm), as in TensorFlow: all become NaN when that
// is not finite. Undefined tensors stay undefined. Throws InvalidArgument unless norm > 0.
LOCKSTEP_EXPORT std::vector<Tensor> clip_by_global_norm(
    std::span<const Tensor> tensors, double norm, SourceLocation at = SourceLocation::current());

}  // namespace lockstep::optim
