// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/mean.h>

#include <string>

namespace lockstep::metrics {

// How often the largest prediction is the label's, over all replicas: a Mean of ones and zeros.
class LOCKSTEP_EXPORT SparseCategoricalAccuracy {
 public:
  explicit SparseCategoricalAccuracy(std::string name = "accuracy",
                                     SourceLocation at = SourceLocation::current())
      : mean_(std::move(name), at) {}

  // labels [..] of i32 or i64, predictions (probabilities or logits) [.., classes]; `weight`
  // broadcasts to the labels. Throws as Mean::update_state, and InvalidArgument when the shapes do
  // not fit.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // As Mean's.
  Tensor result(SourceLocation at = SourceLocation::current()) const { return mean_.result(at); }
  void reset_state(SourceLocation at = SourceLocation::current()) { mean_.reset_state(at); }

  const std::string& name() const { return mean_.name(); }
  void visit_state(StateVisitor& visitor) { mean_.visit_state(visitor); }

 private:
  Mean mean_;
};

}  // namespace lockstep::metrics
