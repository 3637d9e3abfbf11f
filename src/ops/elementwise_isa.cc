// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {

constinit const ElementwiseKernels f32_elementwise = elementwise_kernels_of<float>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
