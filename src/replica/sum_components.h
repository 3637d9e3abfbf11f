// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <span>

namespace lockstep {

// The sum of the replicas' components, at least one, along the canonical binary tree over replica ids:
// the order in which communicators sum, so that both give the same bits.
Tensor sum_components(std::span<const Tensor> components);

}  // namespace lockstep
