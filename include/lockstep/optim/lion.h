// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;      // in (0, 1]
  double beta_2 = 0.99;     // in [0, 1)
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Lion (Chen et al., arXiv:2302.06675), by the formula of Keras, which LionRule (ops/update_rule.h)
// states. Slot: "m".
class LOCKSTEP_EXPORT Lion final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a beta out of range or a negative number.
  explicit Lion(const LionOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
