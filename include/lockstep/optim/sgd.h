// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;      // in [0, 1)
  bool nesterov = false;    // needs momentum
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Gradient descent, by the formulas of Keras, which SgdRule (ops/update_rule.h) states. Slot:
// "velocity", with momentum.
class LOCKSTEP_EXPORT SGD final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a momentum out of range, nesterov without momentum, or a negative
  // number.
  explicit SGD(const SGDOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
