// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {

constinit const ReduceKernels f32_reduce = reduce_kernels_of<float>();
constinit const ReduceKernels f64_reduce = reduce_kernels_of<double>();
constinit const ReduceKernels i32_reduce = reduce_kernels_of<std::int32_t, std::uint32_t>();
constinit const ReduceKernels i64_reduce = reduce_kernels_of<std::int64_t, std::uint64_t>();
constinit const ReduceKernels u8_reduce = reduce_kernels_of<std::uint8_t>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
