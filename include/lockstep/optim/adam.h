// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1)
  double beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;
  bool amsgrad = false;     // the largest v so far in place of v (arXiv:1904.09237)
  double weight_decay = 0;  // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Adam (Kingma and Ba, arXiv:1412.6980), by the formula of Keras, which AdamRule
// (ops/update_rule.h) states.
// Slots: "m" and "v", with amsgrad also "v_hat".
class LOCKSTEP_EXPORT Adam : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a beta out of range or a negative number.
  explicit Adam(const AdamOptions& options = {}, SourceLocation at = SourceLocation::current());
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta_1 = 0.9;    // in [0, 1)
  double beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;
  bool amsgrad = false;
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Adam with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101): Adam with another
// default, as in Keras.
class LOCKSTEP_EXPORT AdamW final : public Adam {
 public:
  // As Adam's.
  explicit AdamW(const AdamWOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
