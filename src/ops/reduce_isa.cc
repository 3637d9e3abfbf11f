// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {

constinit const ReduceKernels f32_reduce = reduce_kernels_of<float>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
