// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct NadamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1)
  double beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Nadam, Adam with Nesterov momentum (Dozat, ICLR workshop 2016), by the formula of Keras, which
// NadamRule (ops/update_rule.h) states. Slots: "m" and "v".
class LOCKSTEP_EXPORT Nadam final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a beta out of range or a negative number.
  explicit Nadam(const NadamOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
