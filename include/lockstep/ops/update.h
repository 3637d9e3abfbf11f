// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update_rule.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <span>

namespace lockstep {

// What all variables of a training step share. All that changes over time is a scalar tensor of any
// dtype, so that the same update can be traced.
struct UpdateStep {
  Tensor learning_rate = {};
  Tensor number;               // of this update, from 1 on
  Tensor gradient_scale = {};  // multiplies the gradient first (unscaling, clipping); undefined: 1
  double weight_decay = 0;     // weights shrink by learning_rate * weight_decay first; LARS: see it
  // i64 [count], ascending: the gradient is [count, ...], of these rows of the weights alone, and no
  // other is touched. For rules that updates_by_rows, without weight decay, on CPUs.
  Tensor rows = {};
};

// Whether a gradient of zero leaves weights and slots as they are, so that rows without gradient need
// not be visited: SGD without momentum, and Adagrad.
LOCKSTEP_EXPORT bool updates_by_rows(const UpdateRule& rule) noexcept;

// One update of a variable by a rule, in one pass over its memory, after another that only reads it
// where the rule needs norms. `state` is the weights and then the slots of the rule (update_slots),
// and becomes the new ones. A tensor of it that is unique() is overwritten in place; one that
// somebody else holds keeps its value, and the new value goes to a fresh buffer. On an error the
// state is as it was.
//
// State and gradient are of one floating dtype and shape (but see `rows`). Scalars are prepared in
// double; elements see only + - * / sqrt, comparisons and what is made of them, each rounded by
// itself, so all instruction sets give the same bits. f16 and bf16 are updated in float and rounded
// once. Nothing is recorded. Throws InvalidArgument for dtypes, shapes, rows or scalars that do not
// fit, and Unimplemented for rows on accelerators.
LOCKSTEP_EXPORT void apply_update(const UpdateRule& rule, std::span<Tensor> state,
                                  const Tensor& gradient, const UpdateStep& step,
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
