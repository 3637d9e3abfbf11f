// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {

constinit const ElementwiseKernels f32_elementwise = elementwise_kernels_of<float>();
constinit const ElementwiseKernels f64_elementwise = elementwise_kernels_of<double>();
constinit const ElementwiseKernels i32_elementwise = elementwise_kernels_of<std::int32_t>();
constinit const ElementwiseKernels i64_elementwise = elementwise_kernels_of<std::int64_t>();
constinit const ElementwiseKernels u8_elementwise = elementwise_kernels_of<std::uint8_t>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
