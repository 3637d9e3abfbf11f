// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.h"

#include <lockstep/base/check.h>
#include <lockstep/device/buffer.h>
#include <lockstep/ops/threads.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/dense_kernels.h"
#include "ops/gemm_kernels.h"
#include "ops/half_kernels.h"
#include "ops/onednn.h"

// ThreadSanitizer does not see how libgomp lets threads start and join, and is told: what stands
// before a release happens before what follows an acquire of the same address.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_release(address) static_cast<void>(address)
#define __tsan_acquire(address) static_cast<void>(address)
#endif

namespace lockstep::cpu {
namespace {

template <class T>
struct Operands {
  const T* a;
  const T* b;
  const T* bias;
  T* c;
};

// Some rows of one matrix of the batch.
struct Band {
  std::int64_t matrix, first_row, rows;
};

template <class T>
void begin_rows(const Gemm& gemm, const Band& band, const T* bias, T* c) {
  if (gemm.accumulate) return;
  for (std::int64_t r = 0; r < band.rows; ++r) {
    T* row = c + r * gemm.row_c;
    if (gemm.bias)
      std::copy_n(bias, gemm.n, row);
    else
      std::fill_n(row, gemm.n, T(0));
  }
}

template <class T>
void relu_rows(const Gemm& gemm, const Band& band, T* c) {
  for (std::int64_t r = 0; r < band.rows; ++r) {
    T* row = c + r * gemm.row_c;
    if constexpr (std::is_same_v<T, float>)
      dense_kernels().f32.relu(row, gemm.n);
    else if constexpr (std::is_same_v<T, double>)
      dense_kernels().f64.relu(row, gemm.n);
    else
      std::transform(row, row + gemm.n, row, [](T x) { return std::max(x, T(0)); });
  }
}

template <class T>
void compute_band(const Gemm& gemm, const GemmKernel<T>& kernel, const Operands<T>& x,
                  const Band& band, void* scratch) {
  const std::int64_t first_of_a = band.first_row * (gemm.transpose_a ? 1 : gemm.row_a);
  T* c = x.c + band.matrix * gemm.stride_c + band.first_row * gemm.row_c;
  begin_rows(gemm, band, x.bias, c);
  if (gemm.k > 0)
    kernel.add_product({.m = band.rows,
                        .n = gemm.n,
                        .k = gemm.k,
                        .transpose_a = gemm.transpose_a,
                        .transpose_b = gemm.transpose_b,
                        .row_a = gemm.row_a,
                        .row_b = gemm.row_b,
                        .row_c = gemm.row_c,
                        .a = x.a + band.matrix * gemm.stride_a + first_of_a,
                        .b = x.b + band.matrix * gemm.stride_b,
                        .c = c},
                       scratch);
  if (gemm.relu) relu_rows(gemm, band, c);
}

// Threads take bands in turn; a batch that is smaller than their number is cut by rows.
template <class T>
void compute_bands(const Gemm& gemm, const GemmKernel<T>& kernel, Device device,
                   const Operands<T>& x) {
  const int threads = intra_op_threads();
  const std::int64_t cuts = std::min((threads + gemm.batch - 1) / gemm.batch, gemm.m);
  const std::int64_t band_rows = (gemm.m + cuts - 1) / cuts;
  const std::size_t piece =
      (kernel.scratch_bytes(band_rows, gemm.n, std::max<std::int64_t>(gemm.k, 1)) + 63) / 64 * 64;
  const Buffer scratch = Buffer::allocate(device, piece * static_cast<std::size_t>(threads));
  const std::int64_t bands = gemm.batch * cuts;
  __tsan_release(scratch.data());
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int thread = 0; thread < threads; ++thread) {
    __tsan_acquire(scratch.data());
    void* own = static_cast<char*>(scratch.data()) + piece * static_cast<std::size_t>(thread);
    for (std::int64_t i = thread; i < bands; i += threads) {
      const std::int64_t first = i % cuts * band_rows;
      const Band band{i / cuts, first, std::min(band_rows, gemm.m - first)};
      if (band.rows > 0) compute_band(gemm, kernel, x, band, own);
    }
    __tsan_release(scratch.data());
  }
  __tsan_acquire(scratch.data());
}

// Elements from the first to the last of an operand, [rows, cols] before transposition.
std::int64_t extent(const Gemm& gemm, std::int64_t stride, bool transpose, std::int64_t rows,
                    std::int64_t cols, std::int64_t row) {
  if (rows == 0 || cols == 0) return 0;
  if (transpose) std::swap(rows, cols);
  return (gemm.batch - 1) * stride + (rows - 1) * row + cols;
}

void compute_in_float(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
                      const void* bias, void* c) {
  const bool dense_batch = gemm.batch == 1 || gemm.stride_c == gemm.m * gemm.n;
  ensure(gemm.row_c == gemm.n && dense_batch && !gemm.accumulate, "gemm",
         "16-bit products are written without gaps");
  const auto widened = [&](const void* x, std::int64_t count) {
    Buffer wide = Buffer::allocate(device, static_cast<std::size_t>(count) * sizeof(float));
    half_kernels().widen(dtype, x, static_cast<float*>(wide.data()), count);
    return wide;
  };
  const Buffer wide_a =
      widened(a, extent(gemm, gemm.stride_a, gemm.transpose_a, gemm.m, gemm.k, gemm.row_a));
  const Buffer wide_b =
      widened(b, extent(gemm, gemm.stride_b, gemm.transpose_b, gemm.k, gemm.n, gemm.row_b));
  const Buffer wide_bias = widened(bias, gemm.bias ? gemm.n : 0);
  const std::int64_t count = gemm.batch * gemm.m * gemm.n;
  const Buffer wide_c = Buffer::allocate(device, static_cast<std::size_t>(count) * sizeof(float));
  compute(gemm, DType::f32, device, wide_a.data(), wide_b.data(), wide_bias.data(), wide_c.data());
  half_kernels().narrow(dtype, static_cast<const float*>(wide_c.data()), c, count);
}

bool is_empty(const Gemm& gemm) { return gemm.batch == 0 || gemm.m == 0 || gemm.n == 0; }

}  // namespace

void compute_with_eigen(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
                        const void* bias, void* c) {
  if (is_empty(gemm)) return;
  const auto run = [&]<class T>(const GemmKernel<T>& kernel) {
    compute_bands<T>(gemm, kernel, device,
                     {static_cast<const T*>(a), static_cast<const T*>(b),
                      static_cast<const T*>(bias), static_cast<T*>(c)});
  };
  switch (dtype) {
    case DType::f32:
      return run(gemm_kernels().f32);
    case DType::f64:
      return run(gemm_kernels().f64);
    case DType::i32:
      return run(gemm_kernels().i32);
    case DType::i64:
      return run(gemm_kernels().i64);
    default:
      throw InternalError(message("compute_with_eigen", "no kernel for ", name_of(dtype)));
  }
}

void compute(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
             const void* bias, void* c) {
  if (is_empty(gemm)) return;
  if (gemm.k > 0 && onednn::compute(gemm, dtype, device, a, b, bias, c)) return;
  if (is_half(dtype))
    compute_in_float(gemm, dtype, device, a, b, bias, c);
  else
    compute_with_eigen(gemm, dtype, device, a, b, bias, c);
}

}  // namespace lockstep::cpu
