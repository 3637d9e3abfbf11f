// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// One matrix product by Eigen, on one thread: c [m, n] += op(a) op(b), row-major, rows as stored
// `row_*` elements apart. No extent is zero.
template <class T>
struct GemmArguments {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  std::int64_t row_a, row_b, row_c;
  const T* a;
  const T* b;
  T* c;
};

// `scratch` holds scratch_bytes(...) bytes aligned to 64.
template <class T>
struct GemmKernel {
  std::size_t (*scratch_bytes)(std::int64_t m, std::int64_t n, std::int64_t k);
  void (*add_product)(const GemmArguments<T>& gemm, void* scratch);
};

struct GemmKernels {
  GemmKernel<float> f32;
  GemmKernel<double> f64;
  GemmKernel<std::int32_t> i32;
  GemmKernel<std::int64_t> i64;
};
LOCKSTEP_ISA_TABLE(GemmKernels, gemm_kernels);

}  // namespace lockstep
