// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Adagrad (Duchi et al., JMLR 12, 2011), by the formula of Keras, which AdagradRule
// (ops/update_rule.h) states. Slot: "accumulator".
class LOCKSTEP_EXPORT Adagrad final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a negative number.
  explicit Adagrad(const AdagradOptions& options = {},
                   SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
