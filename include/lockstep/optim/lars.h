// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct LarsOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.9;             // in [0, 1)
  double trust_coefficient = 0.001;  // the step's norm as a fraction of the weights' at rate 1
  double epsilon = 0;
  double weight_decay = 0;  // added to the gradient
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// LARS (You et al., arXiv:1708.03888, algorithm 1), which LarsRule (ops/update_rule.h) states:
// momentum with a step of each variable in proportion to its norm. Its weight decay is part of the
// gradient. Slot: "velocity".
class LOCKSTEP_EXPORT Lars final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a momentum out of range or a negative number.
  explicit Lars(const LarsOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
