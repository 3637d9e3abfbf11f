// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <span>

namespace lockstep {

// Update ops: one optimizer step of one variable in one pass over its memory. They take their state
// by move and return the new one. A tensor of it that is unique() is overwritten in place; one that
// somebody else holds keeps its value, and the new value goes to a fresh buffer. On an error the
// state is as it was.
//
// Weights, slots and gradient are of one floating dtype and shape. What changes over time comes as
// a scalar tensor of any dtype: learning rate, step (i64: the number of this update, from 1 on) and
// the factor that the gradient is multiplied by first (unscaling and clipping; undefined: 1).
// Scalars are prepared in double; elements see only + - * / sqrt, each rounded by itself, so all
// instruction sets give the same bits. f16 and bf16 are updated in float and rounded once. Nothing
// is recorded.
//
// InvalidArgument for dtypes, shapes or scalars that do not fit.

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay =
      0;  // decoupled: weights shrink by learning_rate * weight_decay first (AdamW)
};

struct AdamState {
  Tensor weights;
  Tensor first, second;  // running means of the gradient and of its square, 0 at the start
};

// Adam as Keras and section 2 (end) of arXiv:1412.6980 have it:
//   first  += (gradient - first) (1 - beta1)
//   second += (gradient^2 - second) (1 - beta2)
//   weights -= learning_rate sqrt(1 - beta2^step) / (1 - beta1^step) first / (sqrt(second) +
//   epsilon)
LOCKSTEP_EXPORT AdamState adam_update(AdamState&& state, const Tensor& gradient,
                                      const Tensor& learning_rate, const Tensor& step,
                                      const AdamOptions& options = {},
                                      const Tensor& gradient_scale = {},
                                      SourceLocation at = SourceLocation::current());

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  // decoupled, as Adam's
};

struct SgdState {
  Tensor weights;
  Tensor velocity;  // 0 at the start; undefined and left so where momentum is 0
};

// Gradient descent as Keras has it. Without momentum weights -= learning_rate gradient; with it
//   velocity = momentum velocity - learning_rate gradient
//   weights += velocity, or with nesterov momentum velocity - learning_rate gradient
LOCKSTEP_EXPORT SgdState sgd_update(SgdState&& state, const Tensor& gradient,
                                    const Tensor& learning_rate, const SgdOptions& options = {},
                                    const Tensor& gradient_scale = {},
                                    SourceLocation at = SourceLocation::current());

// Whether all elements of all tensors are finite: a boolean scalar. True of nothing.
LOCKSTEP_EXPORT Tensor is_finite_all(std::span<const Tensor> tensors,
                                     SourceLocation at = SourceLocation::current());

// The square root of the sum of all squares, of floating dtypes: an f32 scalar, 0 of nothing.
// Squares are added in double in a fixed order, so that it overflows only where the result does.
LOCKSTEP_EXPORT Tensor global_norm(std::span<const Tensor> tensors,
                                   SourceLocation at = SourceLocation::current());

// How many state tensors update ops of this process had to copy because somebody else held them. A
// training loop that keeps no old weights leaves it at 0.
LOCKSTEP_EXPORT std::int64_t update_copies() noexcept;

}  // namespace lockstep
