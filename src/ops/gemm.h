// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/device/device.h>

#include <cstdint>

namespace lockstep {

// A batch of matrix products c = op(a) op(b), all row-major, where op(a) is [m, k], op(b) [k, n]
// and c [m, n]; a transposed operand is stored as [k, m] or [n, k]. Rows as stored lie `row_*`
// elements apart, matrices of the batch `stride_*`; stride 0 uses one matrix for the whole batch.
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;        // c += bias[n], on each row
  bool relu = false;        // c = max(c, 0), after the bias
  bool accumulate = false;  // adds to what c holds; without bias and relu
  std::int64_t row_a = transpose_a ? m : k;
  std::int64_t row_b = transpose_b ? k : n;
  std::int64_t row_c = n;
  std::int64_t stride_a = m * k;
  std::int64_t stride_b = k * n;
  std::int64_t stride_c = m * n;
};

namespace cpu {

// Computes `gemm` on elements of f32, f64, i32, i64, or of f16 or bf16, which accumulate in float
// and round once. `bias` may be null unless gemm.bias. Any extent may be zero: with k = 0 the
// products are zero. Uses intra_op_threads() threads; scratch memory comes from the pool of
// `device`.
void compute(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
             const void* bias, void* c);

// The same by Eigen, for f32, f64, i32 and i64: where oneDNN is not built or has no kernel.
void compute_with_eigen(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
                        const void* bias, void* c);

}  // namespace cpu
}  // namespace lockstep
