// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/base/shape.h>
#include <lockstep/device/device.h>

#include <cstdint>
#include <span>

#include "device/cuda/status.h"
#include "ops/broadcast.h"
#include "ops/convolution.h"
#include "ops/elementwise_kernels.h"
#include "ops/gemm.h"
#include "ops/pool_kernels.h"
#include "ops/reduce_cpu.h"
#include "ops/strided_copy.h"

// The CUDA side of ops: each puts its kernels into the GPU's compute stream and returns. Pointers are
// to that GPU's memory; callers have checked shapes and dtypes as for the CPU's kernels, which say
// what each computes. Defined in builds with CUDA only, where alone a tensor can be on a GPU.
namespace lockstep::cuda {

void unary(UnaryOp op, DType dtype, const void* x, void* y, std::int64_t n, Device device);
void unary_gradient(UnaryOp op, DType dtype, const void* dy, const void* kept, void* dx,
                    std::int64_t n, Device device);
void binary(BinaryOp op, DType dtype, const void* a, const void* b, void* y,
            const Broadcast<2>& plan, std::int64_t n, Device device);
void compare(CompareOp op, DType dtype, const void* a, const void* b, bool* y,
             const Broadcast<2>& plan, std::int64_t n, Device device);
// Elements of `size` bytes.
void select(std::size_t size, const void* condition, const void* a, const void* b, void* y,
            const Broadcast<3>& plan, std::int64_t n, Device device);
void predicate(PredicateOp op, DType dtype, const void* x, bool* y, std::int64_t n, Device device);
void cast(DType from, DType to, const void* x, void* y, std::int64_t n, Device device);
void copy_strided(const StridedCopy& copy, std::size_t size, const void* from, void* to,
                  Device device);

// Indices are i32 or i64. x is [.., rows, width] of elements of `size` bytes, `count` indices are
// along its middle axis, and one outside the rows gives zeros. n: elements of y.
void gather(std::size_t size, DType index, const void* x, const void* indices, void* y,
            std::int64_t rows, std::int64_t count, std::int64_t width, std::int64_t n,
            Device device);
// y is [.., rows, width]; what is added to may be null. An index outside the rows adds nowhere.
void scatter_add(DType dtype, DType index, const void* base, const void* indices,
                 const void* updates, void* y, std::int64_t count, std::int64_t rows,
                 std::int64_t width, std::int64_t n, Device device);
// See ops/indices.h; n numbers, -1 for what is out of range.
void row_numbers(DType index, const void* indices, void* numbers,
                 std::span<const std::int64_t> extents, std::int64_t n, Device device);
void numbers_along(DType index, const void* indices, void* numbers, std::int64_t size,
                   std::int64_t along, std::int64_t inner, std::int64_t n, Device device);
void one_hot(DType dtype, DType index, const void* indices, void* y, std::int64_t depth,
             std::int64_t n, Device device);

void reduce(cpu::Reduction op, DType dtype, const void* x, void* y, const Shape& shape,
            const bool (&reduced)[Shape::kMaxRank], std::int64_t divisor, Device device);
void arg_extreme(bool largest, DType dtype, const void* x, std::int64_t* y, std::int64_t outer,
                 std::int64_t n, std::int64_t inner, Device device);
// The first k of each sorted row of x [rows, n], and the places (i32) that they come from: [rows, k].
// Either may be null.
void sort_rows(DType dtype, const void* x, void* values, void* places, std::int64_t rows,
               std::int64_t n, std::int64_t k, bool descending, Device device);
// f32, f64, i32 or i64.
void cumsum(DType dtype, const void* x, void* y, std::int64_t outer, std::int64_t n,
            std::int64_t inner, bool exclusive, bool reverse, Device device);
// dz = dy where y > 0; y and dz null: dy itself. bias = the sums of the columns.
void bias_gradient(DType dtype, const void* dy, const void* y, void* dz, void* bias,
                   std::int64_t rows, std::int64_t channels, Device device);
// *total += the sum of squares; *y = sqrt(*x); *all = false where an element is not finite.
void add_square_sum(DType dtype, const void* x, double* total, std::int64_t n, Device device);
void square_root(const double* x, float* y, Device device);
void clear_unless_finite(DType dtype, const void* x, bool* all, std::int64_t n, Device device);

// f32 or f64. [outer, n, inner] with `rows` = outer * inner; the logarithm of softmax where `log`.
void softmax(bool log, DType dtype, const void* x, void* y, std::int64_t rows, std::int64_t n,
             std::int64_t inner, Device device);
void softmax_gradient(bool log, DType dtype, const void* dy, const void* y, void* dx,
                      std::int64_t rows, std::int64_t n, std::int64_t inner, Device device);
// Cross entropies: labels are classes (i32, i64; one that does not exist gives NaN), or weights of
// `dtype`. exps and scale may be null.
void losses(DType dtype, DType labels_dtype, const void* labels, const void* x, void* loss,
            void* exps, void* scale, std::int64_t rows, std::int64_t n, Device device);
void losses_gradient(DType dtype, DType labels_dtype, const void* d, const void* labels,
                     const void* exps, const void* scale, void* dx, std::int64_t rows,
                     std::int64_t n, Device device);

// Convolutions of no extent zero, and poolings of f32 or f64 with taps numbered in `tap`, u8 or i32.
void convolve(const Convolution& conv, DType dtype, const void* x, const void* w, const void* bias,
              bool relu, void* y, Device device);
void convolve_input_gradient(const Convolution& conv, DType dtype, const void* dy, const void* w,
                             void* dx, Device device);
void convolve_weight_gradient(const Convolution& conv, DType dtype, const void* x, const void* dy,
                              void* dw, Device device);
void max_pool(const Pool& pool, DType dtype, DType tap, const void* x, void* y, void* taps,
              Device device);
void pool_scatter(const Pool& pool, DType dtype, DType tap, const void* dy, const void* taps,
                  void* dx, Device device);
void pool_gather(const Pool& pool, DType dtype, DType tap, const void* x, const void* taps, void* y,
                 Device device);
void mean_pool(const Pool& pool, DType dtype, const void* x, void* y, Device device);
void mean_pool_gradient(const Pool& pool, DType dtype, const void* dy, void* dx, Device device);

// By cublasLt, f32, f64, f16 or bf16, with k above 0; throws Unimplemented for another dtype and
// Unavailable where the library is missing.
void compute(const Gemm& gemm, DType dtype, const void* a, const void* b, const void* bias, void* c,
             Device device);

}  // namespace lockstep::cuda
