// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/mean.h>

#include <string>

namespace lockstep::metrics {

// How far predictions are from labels, over all replicas. Both are of one shape, but for a last axis
// of extent 1 that only one has; of several numbers [.., n] an example counts with their mean, and
// numbers [rows] are an example each. `weight` goes with the examples as with Mean's values;
// update_state throws as Mean's.

// The mean of (label - prediction)^2.
class LOCKSTEP_EXPORT MeanSquaredError : public MeanMetric {
 public:
  explicit MeanSquaredError(std::string name = "mean_squared_error",
                            SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
};

// Its square root.
class LOCKSTEP_EXPORT RootMeanSquaredError : public MeanMetric {
 public:
  explicit RootMeanSquaredError(std::string name = "root_mean_squared_error",
                                SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  Tensor result(SourceLocation at = SourceLocation::current()) const;
};

// The mean of |label - prediction|.
class LOCKSTEP_EXPORT MeanAbsoluteError : public MeanMetric {
 public:
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error",
                             SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::metrics
