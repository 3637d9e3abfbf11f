// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/tensor.h>

#include <string>

namespace lockstep::metrics {

// The weighted mean of all values seen on all replicas, exact however unevenly they are spread: the
// sum of values times weights over the sum of weights. A cheap handle to on_read variables, made in
// the strategy's scope; each replica adds to its own component and nothing is communicated before
// result().
class LOCKSTEP_EXPORT Mean {
 public:
  explicit Mean(std::string name = "mean", SourceLocation at = SourceLocation::current());

  // Adds values of any numeric dtype and shape, weighted by 1 or by `weight`, which broadcasts to
  // them. In the step function. Throws FailedPrecondition in the scope of another strategy than the
  // metric's and outside replicas under a strategy, InvalidArgument for shapes that do not fit.
  void update_state(const Tensor& values, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // An f64 scalar; 0 when nothing was seen. A collective: in the step function over its replicas,
  // all of which get the same value; outside over the workers.
  Tensor result(SourceLocation at = SourceLocation::current()) const;
  // Forgets what was seen; outside replicas on all of them.
  void reset_state(SourceLocation at = SourceLocation::current());

  const std::string& name() const { return total_and_weight_.name(); }
  void visit_state(StateVisitor& visitor) { total_and_weight_.visit_state(visitor); }

 private:
  Variable total_and_weight_;  // f64[2], one variable so that result() is one collective
};

}  // namespace lockstep::metrics
