// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;  // the paper's is 1
  double rho = 0.95;                   // in [0, 1)
  double epsilon = 1e-7;
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Adadelta (Zeiler, arXiv:1212.5701), by the formula of Keras, which AdadeltaRule
// (ops/update_rule.h) states. Slots: "accumulated_grad" and "accumulated_delta_var".
class LOCKSTEP_EXPORT Adadelta final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a rho out of range or a negative number.
  explicit Adadelta(const AdadeltaOptions& options = {},
                    SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
