// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct FtrlOptions {
  LearningRate learning_rate = 0.001;  // 0, as when warming up, changes nothing
  double learning_rate_power = -0.5;   // 0 or less
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// FTRL-Proximal (McMahan et al., KDD 2013), by the formula of Keras, which FtrlRule
// (ops/update_rule.h) states. Slots: "accumulator" and "linear".
class LOCKSTEP_EXPORT Ftrl final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a learning_rate_power above 0 or another number that is negative.
  explicit Ftrl(const FtrlOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
