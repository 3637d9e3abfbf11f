// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/rule_optimizer.h>

namespace lockstep::optim {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1)
  double beta_2 = 0.999;  // in [0, 1)
  double epsilon = 1e-7;
  double weight_decay = 0;  // decoupled: weights shrink by rate * weight_decay first (AdamW)
  Clip clip = {};
};

// Adam (Kingma and Ba, arXiv:1412.6980), by the formula of Keras; t counts updates from 1:
//   m = beta_1 m + (1 - beta_1) g;  v = beta_2 v + (1 - beta_2) g^2
//   w -= rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)
// Slots: "m" and "v".
class LOCKSTEP_EXPORT Adam final : public RuleOptimizer {
 public:
  // Throws InvalidArgument for a negative rate, epsilon or weight decay, or a beta out of range.
  explicit Adam(const AdamOptions& options = {}, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::optim
