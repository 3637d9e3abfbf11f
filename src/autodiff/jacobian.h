// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "autodiff/backward.h"

namespace lockstep {

// See GradientTape. The records stay.
std::vector<Tensor> jacobian_of(const char* op, TapeRecords& records, const Tensor& target,
                                std::span<const Tensor> sources, SourceLocation at);
Tensor batch_jacobian_of(const char* op, TapeRecords& records, const Tensor& target,
                         const Tensor& source, SourceLocation at);

}  // namespace lockstep
