// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

using CastKernel = void (*)(const void* x, void* y, std::int64_t n);

// Conversions as cast.h has them, by both dtypes' numbers. f16 and bf16 are converted by way of float
// (half_kernels.h): null. Booleans are read as u8, bytes of 0 and 1, which compilers vectorise only as
// such.
struct CastKernels {
  static constexpr int kDTypes = 8;
  struct From {
    CastKernel to[kDTypes];
  };
  From from[kDTypes];
};

LOCKSTEP_ISA_TABLE(CastKernels, cast_kernels);

}  // namespace lockstep
