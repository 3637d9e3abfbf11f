// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/tensor.h>

#include <string>

namespace lockstep::metrics {

// What all metrics are: f64 sums in one on_read variable, made in the strategy's scope, so that an
// update costs no communication and result() one collective. A cheap handle; copies share the sums.
// On TPUs, whose short batches are padded, only tensors with a row for each of the batch's, which they
// are known by, are counted without the padding; of others, as tokens flattened into rows, give weights
// that are 0 there.
//
// Metrics of one's own derive from it: update_state() calls add(), result() computes from total().
class LOCKSTEP_EXPORT Metric {
 public:
  const std::string& name() const { return sums_.name(); }
  // Forgets what was seen; outside replicas on all of them.
  void reset_state(SourceLocation at = SourceLocation::current());
  void visit_state(StateVisitor& visitor) { sums_.visit_state(visitor); }

 protected:
  // Sums of this shape that start at 0.
  Metric(const Shape& shape, std::string name, SourceLocation at);

  // Throws FailedPrecondition "[op] ..." in the scope of another strategy than the metric's, and
  // outside replicas under a strategy.
  void require_step(const char* op, SourceLocation at) const;
  // Adds to this replica's sums; in the step function, after require_step.
  void add(const Tensor& sums, SourceLocation at);
  // The sums over all replicas and workers. A collective: in the step function over its replicas, all
  // of which get the same value; outside over the workers.
  Tensor total(SourceLocation at) const;

 private:
  Variable sums_;
};

}  // namespace lockstep::metrics
