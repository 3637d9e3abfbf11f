// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>

#include "ops/broadcast.h"
#include "ops/elementwise_kernels.h"

// Elementwise ops on host memory. Callers have checked shapes and dtypes; f16 and bf16 are computed
// in float.
namespace lockstep::cpu {

bool offers(UnaryOp op, DType dtype);
bool offers(BinaryOp op, DType dtype);
bool has_gradient(UnaryOp op);
// A kernel for the gradient of an input, 0 or 1, in one pass.
bool has_gradient(BinaryOp op, int input, DType dtype);

void unary(UnaryOp op, DType dtype, const void* x, void* y, std::int64_t n);
// dx = dy * derivative(kept), see UnaryKernel.
void unary_gradient(UnaryOp op, DType dtype, const void* dy, const void* kept, void* dx,
                    std::int64_t n);
void binary(BinaryOp op, DType dtype, const void* a, const void* b, void* y,
            const Broadcast<2>& plan);
void binary_gradient(BinaryOp op, int input, DType dtype, const BinaryGradientInputs& from,
                     void* dx, std::int64_t n);
void compare(CompareOp op, DType dtype, const void* a, const void* b, bool* y,
             const Broadcast<2>& plan);
void predicate(PredicateOp op, DType dtype, const void* x, bool* y, std::int64_t n);
// minimum(maximum(x, low), high) of one low and one high.
void clamp(DType dtype, const void* x, const void* low, const void* high, void* y, std::int64_t n);

}  // namespace lockstep::cpu
