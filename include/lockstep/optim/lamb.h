// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct LambOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1)
  double beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// LAMB (You et al., arXiv:1904.00962), by the formula of Keras, which LambRule (ops/update_rule.h)
// states: Adam with a step of each variable in proportion to its norm. Slots: "m" and "v".
class LOCKSTEP_EXPORT Lamb final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a beta out of range or a negative number.
  explicit Lamb(const LambOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
