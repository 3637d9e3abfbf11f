// SPDX-License-Identifier: Apache-2.0
// The optimizers that are a rule: their options, checked, become the rule's.
#include <lockstep/optim.h>

namespace lockstep::optim {
namespace {

struct Check {
  const char* op;
  SourceLocation at;

  void fraction(const char* name, double x) const {
    require(x >= 0 && x < 1, at, op, "expected ", name, " of 0 or more and below 1, got ", x);
  }
  void not_negative(const char* name, double x) const {
    require(x >= 0, at, op, "expected ", name, " of 0 or more, got ", x);
  }
};

// What every optimizer's options have.
template <class Options>
OptimizerOptions common(const Options& options) {
  return {.learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .ema = options.ema,
          .gradient_accumulation_steps = options.gradient_accumulation_steps};
}

SgdRule rule_of(const SGDOptions& options, const Check& check) {
  check.fraction("momentum", options.momentum);
  require(!options.nesterov || options.momentum > 0, check.at, check.op,
          "nesterov needs a momentum above 0");
  return {.momentum = options.momentum, .nesterov = options.nesterov};
}

// The rules with betas and epsilon.
template <class Rule, class Options>
Rule adaptive(const Options& options, const Check& check) {
  check.fraction("beta_1", options.beta_1);
  check.fraction("beta_2", options.beta_2);
  check.not_negative("epsilon", options.epsilon);
  Rule rule;
  rule.beta_1 = options.beta_1;
  rule.beta_2 = options.beta_2;
  rule.epsilon = options.epsilon;
  return rule;
}

AdamRule rule_of(const AdamOptions& options, const Check& check) {
  AdamRule rule = adaptive<AdamRule>(options, check);
  rule.amsgrad = options.amsgrad;
  return rule;
}
AdamaxRule rule_of(const AdamaxOptions& options, const Check& check) {
  return adaptive<AdamaxRule>(options, check);
}
NadamRule rule_of(const NadamOptions& options, const Check& check) {
  return adaptive<NadamRule>(options, check);
}
LambRule rule_of(const LambOptions& options, const Check& check) {
  return adaptive<LambRule>(options, check);
}

RmsPropRule rule_of(const RMSpropOptions& options, const Check& check) {
  check.fraction("rho", options.rho);
  check.fraction("momentum", options.momentum);
  check.not_negative("epsilon", options.epsilon);
  return {.rho = options.rho,
          .momentum = options.momentum,
          .epsilon = options.epsilon,
          .centered = options.centered};
}

AdagradRule rule_of(const AdagradOptions& options, const Check& check) {
  check.not_negative("initial_accumulator_value", options.initial_accumulator_value);
  check.not_negative("epsilon", options.epsilon);
  return {.initial_accumulator_value = options.initial_accumulator_value,
          .epsilon = options.epsilon};
}

AdadeltaRule rule_of(const AdadeltaOptions& options, const Check& check) {
  check.fraction("rho", options.rho);
  check.not_negative("epsilon", options.epsilon);
  return {.rho = options.rho, .epsilon = options.epsilon};
}

FtrlRule rule_of(const FtrlOptions& options, const Check& check) {
  require(options.learning_rate_power <= 0, check.at, check.op,
          "expected learning_rate_power of 0 or less, got ", options.learning_rate_power);
  check.not_negative("initial_accumulator_value", options.initial_accumulator_value);
  check.not_negative("l1_regularization_strength", options.l1_regularization_strength);
  check.not_negative("l2_regularization_strength", options.l2_regularization_strength);
  check.not_negative("l2_shrinkage_regularization_strength",
                     options.l2_shrinkage_regularization_strength);
  check.not_negative("beta", options.beta);
  return {.learning_rate_power = options.learning_rate_power,
          .initial_accumulator_value = options.initial_accumulator_value,
          .l1_regularization_strength = options.l1_regularization_strength,
          .l2_regularization_strength = options.l2_regularization_strength,
          .l2_shrinkage_regularization_strength = options.l2_shrinkage_regularization_strength,
          .beta = options.beta};
}

LionRule rule_of(const LionOptions& options, const Check& check) {
  require(options.beta_1 > 0 && options.beta_1 <= 1, check.at, check.op,
          "expected beta_1 above 0 and at most 1, got ", options.beta_1);
  check.fraction("beta_2", options.beta_2);
  return {.beta_1 = options.beta_1, .beta_2 = options.beta_2};
}

LarsRule rule_of(const LarsOptions& options, const Check& check) {
  check.fraction("momentum", options.momentum);
  check.not_negative("trust_coefficient", options.trust_coefficient);
  check.not_negative("epsilon", options.epsilon);
  return {.momentum = options.momentum,
          .trust_coefficient = options.trust_coefficient,
          .epsilon = options.epsilon};
}

AdamOptions as_adam(const AdamWOptions& options) {
  return {.learning_rate = options.learning_rate,
          .beta_1 = options.beta_1,
          .beta_2 = options.beta_2,
          .epsilon = options.epsilon,
          .amsgrad = options.amsgrad,
          .weight_decay = options.weight_decay,
          .clip = options.clip,
          .ema = options.ema,
          .gradient_accumulation_steps = options.gradient_accumulation_steps};
}

}  // namespace

#define LOCKSTEP_OPTIMIZER(Name)                              \
  Name::Name(const Name##Options& options, SourceLocation at) \
      : RuleOptimizer(rule_of(options, Check{#Name, at}), common(options), at) {}
LOCKSTEP_OPTIMIZER(SGD)
LOCKSTEP_OPTIMIZER(Adam)
LOCKSTEP_OPTIMIZER(Adamax)
LOCKSTEP_OPTIMIZER(Nadam)
LOCKSTEP_OPTIMIZER(RMSprop)
LOCKSTEP_OPTIMIZER(Adagrad)
LOCKSTEP_OPTIMIZER(Adadelta)
LOCKSTEP_OPTIMIZER(Ftrl)
LOCKSTEP_OPTIMIZER(Lion)
LOCKSTEP_OPTIMIZER(Lamb)
LOCKSTEP_OPTIMIZER(Lars)
#undef LOCKSTEP_OPTIMIZER

AdamW::AdamW(const AdamWOptions& options, SourceLocation at) : Adam(as_adam(options), at) {}

}  // namespace lockstep::optim
