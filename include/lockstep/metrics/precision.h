// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/threshold_metric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::metrics {

struct PrecisionOptions {
  // A prediction above the threshold is positive. Empty: 0.5, or with top_k all of these.
  std::vector<double> thresholds = {};
  // Only the k largest predictions along the last axis can be positive.
  std::optional<std::int64_t> top_k = {};
  // Only this class of the last axis counts.
  std::optional<std::int64_t> class_id = {};
  std::string name = {};  // empty: the metric's
};

// The base of both.
class LOCKSTEP_EXPORT SelectedPredictions : public ThresholdMetric {
 public:
  // labels and predictions of one shape, but for a last axis of extent 1 that only one has; every
  // number is an example, positive where the label is not 0. `weight` as Mean's. Throws as Mean's,
  // and InvalidArgument where the last axis has fewer than top_k classes or no class_id.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());

 protected:
  SelectedPredictions(const PrecisionOptions& options, const char* name, SourceLocation at);
  // A scalar for one threshold.
  Tensor per_threshold(const Tensor& values) const;

 private:
  std::optional<std::int64_t> top_k_, class_id_;
};

// The share of positive predictions that are right: true / (true + false positives). f64, a scalar
// for one threshold, else one number per threshold; 0 where nothing was predicted. A collective, as
// Mean's.
class LOCKSTEP_EXPORT Precision : public SelectedPredictions {
 public:
  // Throws InvalidArgument for thresholds that are not finite, top_k below 1, a negative class_id.
  explicit Precision(const PrecisionOptions& options = {},
                     SourceLocation at = SourceLocation::current())
      : SelectedPredictions(options, "precision", at) {}
  Tensor result(SourceLocation at = SourceLocation::current()) const;
};

// The share of positive examples that are found: true positives / (true positives + false
// negatives), in the same way.
class LOCKSTEP_EXPORT Recall : public SelectedPredictions {
 public:
  explicit Recall(const PrecisionOptions& options = {},
                  SourceLocation at = SourceLocation::current())
      : SelectedPredictions(options, "recall", at) {}
  Tensor result(SourceLocation at = SourceLocation::current()) const;
};

}  // namespace lockstep::metrics
