// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <variant>
#include <vector>

namespace lockstep {

// How an optimizer makes new weights w from a gradient g and from what it remembers of earlier ones,
// its slots, which are 0 at the start unless said otherwise. rate is the learning rate, and t counts
// updates from 1. What is written as one element holds for all.

// Gradient descent as Keras has it. Slot: "velocity" v, where there is a momentum.
//   w -= rate g                     without momentum
//   v = momentum v - rate g
//   w += v                          with momentum
//   w += momentum v - rate g        with nesterov
struct SgdRule {
  double momentum = 0;
  bool nesterov = false;  // needs momentum
};

// Adam (Kingma and Ba, arXiv:1412.6980) as Keras and the end of the paper's section 2 have it. Slots:
// "m" and "v".
//   m += (g - m) (1 - beta_1);  v += (g^2 - v) (1 - beta_2)
//   w -= rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
struct AdamRule {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

using UpdateRule = std::variant<SgdRule, AdamRule>;

struct UpdateSlot {
  const char* name;
  double start;  // the value that it starts at
};
// The slots of a rule, in the order in which apply_update() takes them.
LOCKSTEP_EXPORT std::vector<UpdateSlot> update_slots(const UpdateRule& rule);

}  // namespace lockstep
