// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;      // in [0, 1)
  bool nesterov = false;    // needs momentum
  double weight_decay = 0;  // decoupled: weights shrink by rate * weight_decay first
  Clip clip = {};
};

// Gradient descent, by the formulas of Keras:
//   without momentum   w -= rate * g
//   with               v = momentum * v - rate * g;  w += v
//   nesterov           v as before;                  w += momentum * v - rate * g
// Slot: "velocity" v, with momentum.
class LOCKSTEP_EXPORT SGD final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a negative rate, negative weight decay, a momentum out of range, or
  // nesterov without momentum.
  explicit SGD(const SGDOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
