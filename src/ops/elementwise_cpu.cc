// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise_cpu.h"

#include <algorithm>
#include <cstddef>

#include "ops/elementwise_kernels.h"
#include "ops/half_kernels.h"

namespace lockstep {

namespace cpu {
namespace {

// The kernels of a dtype; f16 and bf16 have float's. Booleans are compared as bytes 0 and 1.
const ElementwiseKernels& kernels_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return f64_elementwise();
    case DType::i32:
      return i32_elementwise();
    case DType::i64:
      return i64_elementwise();
    case DType::u8:
    case DType::boolean:
      return u8_elementwise();
    default:
      return f32_elementwise();
  }
}

const std::byte* at(const void* data, std::int64_t index, DType dtype) {
  return static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype));
}
std::byte* at(void* data, std::int64_t index, DType dtype) {
  return static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype));
}

// A float kernel on a block of 16-bit operands; the result is of `dtype` or, from comparisons,
// boolean.
void half_block(BinaryKernel kernel, DType dtype, DType result, const void* a, const void* b,
                void* y, const BinaryBlock& block) {
  const HalfKernels& half = half_kernels();
  float wide_a[kHalfBlock], wide_b[kHalfBlock], wide_y[kHalfBlock];
  for (std::int64_t row = 0; row < block.rows; ++row) {
    for (std::int64_t i = 0; i < block.cols; i += kHalfBlock) {
      const std::int64_t n = std::min(kHalfBlock, block.cols - i);
      half.widen(dtype, at(a, row * block.a_row + (block.a_col ? i : 0), dtype), wide_a,
                 block.a_col ? n : 1);
      half.widen(dtype, at(b, row * block.b_row + (block.b_col ? i : 0), dtype), wide_b,
                 block.b_col ? n : 1);
      void* const to = at(y, row * block.cols + i, result);
      kernel(wide_a, wide_b, result == DType::boolean ? to : wide_y,
             {.rows = 1,
              .cols = n,
              .a_row = 0,
              .b_row = 0,
              .a_col = block.a_col,
              .b_col = block.b_col});
      if (result != DType::boolean) half.narrow(dtype, wide_y, to, n);
    }
  }
}

void broadcast(BinaryKernel kernel, DType dtype, DType result, const void* a, const void* b,
               void* y, const Broadcast<2>& plan) {
  const BinaryBlock block{.rows = plan.rows(),
                          .cols = plan.cols(),
                          .a_row = plan.row_stride(0),
                          .b_row = plan.row_stride(1),
                          .a_col = plan.col_stride(0) != 0,
                          .b_col = plan.col_stride(1) != 0};
  plan.for_each_block([&](const std::int64_t(&from)[2], std::int64_t to) {
    const void* block_a = at(a, from[0], dtype);
    const void* block_b = at(b, from[1], dtype);
    if (is_half(dtype))
      half_block(kernel, dtype, result, block_a, block_b, at(y, to, result), block);
    else
      kernel(block_a, block_b, at(y, to, result), block);
  });
}

template <class F>
void in_half_blocks(std::int64_t n, F&& f) {
  for (std::int64_t i = 0; i < n; i += kHalfBlock) f(i, std::min(kHalfBlock, n - i));
}

const UnaryKernel& kernel_of(UnaryOp op, DType dtype) {
  return kernels_of(dtype).unary[static_cast<int>(op)];
}

}  // namespace

bool offers(UnaryOp op, DType dtype) {
  return dtype != DType::boolean && kernel_of(op, dtype).forward != nullptr;
}

bool offers(BinaryOp op, DType dtype) {
  return dtype != DType::boolean && kernels_of(dtype).binary[static_cast<int>(op)] != nullptr;
}

bool has_gradient(UnaryOp op) {
  return f64_elementwise().unary[static_cast<int>(op)].gradient != nullptr;
}

bool has_gradient(BinaryOp op, int input, DType dtype) {
  return !is_half(dtype) && kernels_of(dtype).binary_gradient[static_cast<int>(op)][input];
}

void unary(UnaryOp op, DType dtype, const void* x, void* y, std::int64_t n) {
  const auto forward = kernel_of(op, dtype).forward;
  if (!is_half(dtype)) return forward(x, y, n);
  float wide_x[kHalfBlock], wide_y[kHalfBlock];
  in_half_blocks(n, [&](std::int64_t i, std::int64_t count) {
    half_kernels().widen(dtype, at(x, i, dtype), wide_x, count);
    forward(wide_x, wide_y, count);
    half_kernels().narrow(dtype, wide_y, at(y, i, dtype), count);
  });
}

void unary_gradient(UnaryOp op, DType dtype, const void* dy, const void* kept, void* dx,
                    std::int64_t n) {
  const auto gradient = kernel_of(op, dtype).gradient;
  if (!is_half(dtype)) return gradient(dy, kept, dx, n);
  float wide_dy[kHalfBlock], wide_kept[kHalfBlock], wide_dx[kHalfBlock];
  in_half_blocks(n, [&](std::int64_t i, std::int64_t count) {
    half_kernels().widen(dtype, at(dy, i, dtype), wide_dy, count);
    if (kept) half_kernels().widen(dtype, at(kept, i, dtype), wide_kept, count);
    gradient(wide_dy, wide_kept, wide_dx, count);
    half_kernels().narrow(dtype, wide_dx, at(dx, i, dtype), count);
  });
}

void binary(BinaryOp op, DType dtype, const void* a, const void* b, void* y,
            const Broadcast<2>& plan) {
  broadcast(kernels_of(dtype).binary[static_cast<int>(op)], dtype, dtype, a, b, y, plan);
}

void binary_gradient(BinaryOp op, int input, DType dtype, const BinaryGradientInputs& from,
                     void* dx, std::int64_t n) {
  kernels_of(dtype).binary_gradient[static_cast<int>(op)][input](from, dx, n);
}

void compare(CompareOp op, DType dtype, const void* a, const void* b, bool* y,
             const Broadcast<2>& plan) {
  broadcast(kernels_of(dtype).compare[static_cast<int>(op)], dtype, DType::boolean, a, b, y, plan);
}

void predicate(PredicateOp op, DType dtype, const void* x, bool* y, std::int64_t n) {
  const PredicateKernel kernel = kernels_of(dtype).predicate[static_cast<int>(op)];
  if (!is_half(dtype)) return kernel(x, y, n);
  float wide[kHalfBlock];
  in_half_blocks(n, [&](std::int64_t i, std::int64_t count) {
    half_kernels().widen(dtype, at(x, i, dtype), wide, count);
    kernel(wide, y + i, count);
  });
}

void clamp(DType dtype, const void* x, const void* low, const void* high, void* y, std::int64_t n) {
  const auto kernel = kernels_of(dtype).clamp;
  if (!is_half(dtype)) return kernel(x, low, high, y, n);
  float least, most, wide_x[kHalfBlock], wide_y[kHalfBlock];
  half_kernels().widen(dtype, low, &least, 1);
  half_kernels().widen(dtype, high, &most, 1);
  in_half_blocks(n, [&](std::int64_t i, std::int64_t count) {
    half_kernels().widen(dtype, at(x, i, dtype), wide_x, count);
    kernel(wide_x, &least, &most, wide_y, count);
    half_kernels().narrow(dtype, wide_y, at(y, i, dtype), count);
  });
}

}  // namespace cpu
}  // namespace lockstep
