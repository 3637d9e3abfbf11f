// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <variant>
#include <vector>

namespace lockstep {

// How an optimizer makes new weights w from a gradient g and from what it remembers of earlier ones,
// its slots, which are 0 at the start unless said otherwise. rate is the learning rate, and t counts
// updates from 1. What is written of one element holds for all; |x| of a whole variable is its
// 2-norm. Formulas are Keras's (version 3) where it has the rule.

// Gradient descent. Slot: "velocity" v, where there is a momentum.
//   w -= rate g                     without momentum
//   v = momentum v - rate g
//   w += v                          with momentum
//   w += momentum v - rate g        with nesterov
struct SgdRule {
  double momentum = 0;
  bool nesterov = false;  // needs momentum
};

// Adam (Kingma and Ba, arXiv:1412.6980) as the end of the paper's section 2 has it. Slots: "m" and
// "v"; with amsgrad (Reddi et al., arXiv:1904.09237) also "v_hat".
//   m += (g - m) (1 - beta_1);  v += (g^2 - v) (1 - beta_2)
//   w -= rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
//   amsgrad: v_hat = max(v_hat, v) takes the place of v in the last line
struct AdamRule {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
};

// Adamax (arXiv:1412.6980, section 7.1). Slots: "m" and "u".
//   m += (g - m) (1 - beta_1);  u = max(beta_2 u, |g|)
//   w -= rate / (1 - beta_1^t) m / (u + epsilon)
struct AdamaxRule {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

// Nadam (Dozat, Incorporating Nesterov momentum into Adam). Slots: "m" and "v".
//   m += (g - m) (1 - beta_1);  v += (g^2 - v) (1 - beta_2)
//   b_t = beta_1 (1 - 0.96^t / 2);  B_t = b_1 b_2 ... b_t
//   w -= rate (b_{t+1} m / (1 - B_{t+1}) + (1 - b_t) g / (1 - B_t))
//             / (sqrt(v / (1 - beta_2^t)) + epsilon)
struct NadamRule {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

// RMSprop (Tieleman and Hinton, Coursera lecture 6.5). Slots: "velocity" v, "momentum" m where there
// is one, "average_gradient" a where centered.
//   v = rho v + (1 - rho) g^2;  a = rho a + (1 - rho) g
//   step = rate g / sqrt(v + epsilon), centered rate g / sqrt(max(v - a^2, 0) + epsilon), where Keras
//   has no max and may take the root of a negative number
//   w -= step, with momentum m = momentum m + step; w -= m
struct RmsPropRule {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
};

// Adagrad (Duchi et al., JMLR 12, 2011). Slot: "accumulator" a, which starts at
// initial_accumulator_value.
//   a += g^2;  w -= rate g / sqrt(a + epsilon)
struct AdagradRule {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
};

// Adadelta (Zeiler, arXiv:1212.5701). Slots: "accumulated_grad" a and "accumulated_delta_var" d.
//   a = rho a + (1 - rho) g^2;  delta = sqrt(d + epsilon) / sqrt(a + epsilon) g
//   d = rho d + (1 - rho) delta^2;  w -= rate delta
struct AdadeltaRule {
  double rho = 0.95;
  double epsilon = 1e-7;
};

// FTRL-Proximal (McMahan et al., Ad click prediction, KDD 2013). Slots: "accumulator" a, which starts
// at initial_accumulator_value, and "linear" z. With p = -learning_rate_power:
//   z += g + 2 l2_shrinkage w - ((a + g^2)^p - a^p) / rate w;  a += g^2
//   w = (clip(z, -l1, l1) - z) / ((a^p + beta) / rate + 2 l2), 0 where that is divided by 0
// A rate of 0 leaves all as it is.
struct FtrlRule {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
};

// Lion (Chen et al., arXiv:2302.06675). Slot: "m".
//   w -= rate sign(beta_1 m + (1 - beta_1) g);  m = beta_2 m + (1 - beta_2) g
struct LionRule {
  double beta_1 = 0.9;
  double beta_2 = 0.99;
};

// LAMB (You et al., arXiv:1904.00962); weights are decayed before, not within the direction d. Slots:
// "m" and "v".
//   m += (g - m) (1 - beta_1);  v += (g^2 - v) (1 - beta_2)
//   d = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= rate |w| / |d| d, with a ratio of 1 where a norm is 0
struct LambRule {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

// LARS (You et al., arXiv:1708.03888, algorithm 1), whose weight decay is part of the gradient. Slot:
// "velocity" v.
//   local = trust_coefficient |w| / (|g| + weight_decay |w| + epsilon), 1 where |w| or |g| is 0
//   v = momentum v + rate local (g + weight_decay w);  w -= v
struct LarsRule {
  double momentum = 0.9;
  double trust_coefficient = 0.001;
  double epsilon = 0;
};

// A moving average w of what is given as gradient: w = momentum w + (1 - momentum) g, from g itself at
// the first update. No slot.
struct AverageRule {
  double momentum = 0.99;
};

using UpdateRule = std::variant<SgdRule, AdamRule, AdamaxRule, NadamRule, RmsPropRule, AdagradRule,
                                AdadeltaRule, FtrlRule, LionRule, LambRule, LarsRule, AverageRule>;

struct UpdateSlot {
  const char* name;
  double start;  // the value that it starts at
};
// The slots of a rule, in the order in which apply_update() takes them.
LOCKSTEP_EXPORT std::vector<UpdateSlot> update_slots(const UpdateRule& rule);

}  // namespace lockstep
