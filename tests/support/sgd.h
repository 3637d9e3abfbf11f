// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/context.h>

#include <span>
#include <vector>

namespace lockstep::testing {

// The sums over all replicas of the gradients of `loss`, reduced while they are computed: what an
// optimizer's minimize does, written with the public pieces.
inline ReducedGradients reduced_gradients(std::span<const Variable> variables, const Tensor& loss,
                                          GradientTape& tape) {
  const auto reduction =
      get_replica_context()->begin_gradient_reduction(variables, SourceLocation::current());
  tape.gradient(loss, variables,
                {.on_ready = [&](std::size_t i, const Tensor& g) { reduction->ready(i, g); },
                 .place = [&](std::size_t i) { return reduction->place(i); }});
  return reduction->finish();
}

// w -= learning_rate * gradient for every variable that some replica used.
inline void descend(std::span<const Variable> variables, const ReducedGradients& reduced,
                    double learning_rate) {
  if (reduced.skip.item<bool>()) return;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Variable variable = variables[i];
    if (reduced.gradients[i].defined())
      variable.assign_sub(mul(reduced.gradients[i], learning_rate));
  }
}

inline void sgd_step(std::span<const Variable> variables, const Tensor& loss, GradientTape& tape,
                     double learning_rate) {
  descend(variables, reduced_gradients(variables, loss, tape), learning_rate);
}

}  // namespace lockstep::testing
