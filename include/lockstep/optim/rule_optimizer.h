// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update_rule.h>
#include <lockstep/optim/optimizer.h>

namespace lockstep::optim {

// An optimizer whose update is one of the rules of ops/update_rule.h, a single pass over the memory
// of a variable and its slots (two where the rule needs norms).
class LOCKSTEP_EXPORT RuleOptimizer : public Optimizer {
 protected:
  RuleOptimizer(const UpdateRule& rule, const OptimizerOptions& options, SourceLocation at);
  void update(const Update& update) const final;
  bool updates_by_rows() const final;

 private:
  UpdateRule rule_;
};

}  // namespace lockstep::optim
