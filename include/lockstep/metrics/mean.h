// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/metric.h>

#include <string>

namespace lockstep::metrics {

// A weighted mean over all replicas, exact however unevenly the values are spread: the sum of values
// times weights over the sum of weights. What accuracies and errors derive from.
class LOCKSTEP_EXPORT MeanMetric : public Metric {
 public:
  // An f64 scalar; 0 when nothing was seen. A collective, as Metric::total.
  Tensor result(SourceLocation at = SourceLocation::current()) const;

 protected:
  MeanMetric(std::string name, SourceLocation at);
  // Adds values of any numeric dtype and shape, weighted by 1 or by `weight`; messages begin "[op]".
  void add_mean(const Tensor& values, const Tensor& weight, const char* op, SourceLocation at);
};

// The mean of the values given.
class LOCKSTEP_EXPORT Mean : public MeanMetric {
 public:
  explicit Mean(std::string name = "mean", SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}

  // Adds values of any numeric dtype and shape, weighted by 1 or by `weight`, which is a scalar, or
  // has the values' shape or their first axes (one weight per row, say), with extents of 1 where it
  // is to be repeated. In the step function. Throws FailedPrecondition in the scope of another
  // strategy than the metric's and outside replicas under a strategy, InvalidArgument for shapes that
  // do not fit.
  void update_state(const Tensor& values, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current()) {
    add_mean(values, weight, "Mean::update_state", at);
  }
};

// Their sum, weighted in the same way.
class LOCKSTEP_EXPORT Sum : public Metric {
 public:
  explicit Sum(std::string name = "sum", SourceLocation at = SourceLocation::current())
      : Metric({}, std::move(name), at) {}

  // As Mean's.
  void update_state(const Tensor& values, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // An f64 scalar; a collective, as Mean's.
  Tensor result(SourceLocation at = SourceLocation::current()) const { return total(at); }
};

}  // namespace lockstep::metrics
