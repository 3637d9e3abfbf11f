// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/sgd.h>

namespace lockstep::optim {
namespace {

SgdRule rule_of(const SGDOptions& options, SourceLocation at) {
  require(options.momentum >= 0 && options.momentum < 1, at, "SGD",
          "expected a momentum of 0 or more and below 1, got ", options.momentum);
  require(!options.nesterov || options.momentum > 0, at, "SGD",
          "nesterov needs a momentum above 0");
  require(options.weight_decay >= 0, at, "SGD", "expected a weight decay of 0 or more, got ",
          options.weight_decay);
  return {.momentum = options.momentum, .nesterov = options.nesterov};
}

}  // namespace

SGD::SGD(const SGDOptions& options, SourceLocation at)
    : RuleOptimizer(rule_of(options, at), options.learning_rate, options.weight_decay, options.clip,
                    at) {}

}  // namespace lockstep::optim
