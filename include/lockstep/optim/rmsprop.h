// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;     // in [0, 1)
  double momentum = 0;  // in [0, 1)
  double epsilon = 1e-7;
  bool centered = false;    // divides by the gradient's standard deviation
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// RMSprop (Tieleman and Hinton, Coursera lecture 6.5), by the formula of Keras, which RmsPropRule
// (ops/update_rule.h) states. Slots: "velocity", with momentum "momentum", centered
// "average_gradient".
class LOCKSTEP_EXPORT RMSprop final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a rho or momentum out of range or a negative number.
  explicit RMSprop(const RMSpropOptions& options = {},
                   SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
