// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/metric.h>

#include <string>
#include <vector>

namespace lockstep::metrics {

// What metrics of yes-or-no predictions derive from: at each of some thresholds, the weights of
// examples that are predicted to be positive (above the threshold) and are, or are not.
class LOCKSTEP_EXPORT ThresholdMetric : public Metric {
 public:
  const std::vector<double>& thresholds() const { return thresholds_; }

 protected:
  ThresholdMetric(std::vector<double> thresholds, std::string name, SourceLocation at);

  // Of one shape, but for a last axis of extent 1 that only one has: every number is an example,
  // positive where the label is not 0. `weight` as Mean's. Predictions that are false in `candidates`,
  // of their shape, are negative; undefined: none.
  void count(const Tensor& labels, const Tensor& predictions, const Tensor& weight,
             const Tensor& candidates, const char* op, SourceLocation at);

  // f64, one number per threshold; a collective, as Metric::total.
  struct Counts {
    Tensor true_positives, false_positives, true_negatives, false_negatives;
  };
  Counts counts(SourceLocation at) const;

 private:
  std::vector<double> thresholds_;
};

}  // namespace lockstep::metrics
