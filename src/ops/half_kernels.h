// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Bulk conversions between float and the 16-bit types, with the bits of lockstep/base/half.h.
struct HalfKernels {
  void (*f16_to_f32)(const void* x, float* y, std::int64_t n);
  void (*bf16_to_f32)(const void* x, float* y, std::int64_t n);
  void (*f32_to_f16)(const float* x, void* y, std::int64_t n);
  void (*f32_to_bf16)(const float* x, void* y, std::int64_t n);

  void widen(DType dtype, const void* x, float* y, std::int64_t n) const {
    (dtype == DType::f16 ? f16_to_f32 : bf16_to_f32)(x, y, n);
  }
  void narrow(DType dtype, const float* x, void* y, std::int64_t n) const {
    (dtype == DType::f16 ? f32_to_f16 : f32_to_bf16)(x, y, n);
  }
};

LOCKSTEP_ISA_TABLE(HalfKernels, half_kernels);

constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Elements that ops on 16-bit types hold in float at a time, on the stack.
constexpr std::int64_t kHalfBlock = 1024;

}  // namespace lockstep
