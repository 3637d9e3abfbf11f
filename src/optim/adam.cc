// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adam.h>

namespace lockstep::optim {
namespace {

AdamRule rule_of(const AdamOptions& options, SourceLocation at) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  require(is_beta(options.beta_1) && is_beta(options.beta_2), at, "Adam",
          "expected betas of 0 or more and below 1, got ", options.beta_1, " and ", options.beta_2);
  require(options.epsilon >= 0 && options.weight_decay >= 0, at, "Adam",
          "expected an epsilon and a weight decay of 0 or more, got ", options.epsilon, " and ",
          options.weight_decay);
  return {.beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon};
}

}  // namespace

Adam::Adam(const AdamOptions& options, SourceLocation at)
    : RuleOptimizer(rule_of(options, at), options.learning_rate, options.weight_decay, options.clip,
                    at) {}

}  // namespace lockstep::optim
