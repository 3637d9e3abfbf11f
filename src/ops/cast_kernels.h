// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

using CastKernel = void (*)(const void* x, void* y, std::int64_t n);

// From one element type: f16 and bf16 are converted by way of float (half_kernels.h).
struct CastsFrom {
  CastKernel f32, f64, i32, i64, u8, boolean;
};

// Conversions as cast.h has them. Booleans are read as u8, bytes of 0 and 1, which compilers vectorise
// only as such.
struct CastKernels {
  CastsFrom f32, f64, i32, i64, u8;
};

LOCKSTEP_ISA_TABLE(CastKernels, cast_kernels);

}  // namespace lockstep
