// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/threshold_metric.h>

#include <string>
#include <vector>

namespace lockstep::metrics {

// Which curve: the share of positives found over that of negatives taken for positive, or precision
// over recall.
enum class Curve { roc, pr };
// Between two thresholds: trapezoids (for pr the interpolation of Davis and Goadrich, 2006), the lower
// or the higher of the two values.
enum class AreaRule { interpolation, minoring, majoring };

struct AUCOptions {
  Curve curve = Curve::roc;
  AreaRule summation_method = AreaRule::interpolation;
  int num_thresholds = 200;             // at equal distances from 0 to 1
  std::vector<double> thresholds = {};  // instead: in [0, 1], in any order; 0 and 1 are added
  bool from_logits = false;             // predictions are logits: their sigmoid counts
  std::string name = "auc";
};

// The area under the curve of a classifier of two classes, summed up from counts at thresholds as
// Keras does: it is as fine as the thresholds are. (roc: the probability that a positive example is
// predicted above a negative one.)
class LOCKSTEP_EXPORT AUC : public ThresholdMetric {
 public:
  // Throws InvalidArgument for fewer than 2 thresholds and those out of [0, 1].
  explicit AUC(const AUCOptions& options = {}, SourceLocation at = SourceLocation::current());

  // Labels, positive where they are not 0, and predictions, probabilities from 0 to 1, of one shape,
  // but for a last axis of extent 1 that only one has: every number is an example. `weight` as
  // Mean's. Throws as Mean's, and InvalidArgument on CPUs for a prediction of weight other than 0
  // that is no probability; where nobody can be told, one above 1 is positive at all thresholds, one
  // below 0 and NaN at none.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // An f64 scalar; 0 unless both classes were seen. A collective, as Mean's.
  Tensor result(SourceLocation at = SourceLocation::current()) const;

 private:
  Curve curve_;
  AreaRule rule_;
  bool from_logits_;
};

}  // namespace lockstep::metrics
