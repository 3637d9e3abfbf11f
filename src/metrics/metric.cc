// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/metrics/metric.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <utility>

namespace lockstep::metrics {

Metric::Metric(const Shape& shape, std::string name, SourceLocation at)
    : sums_(lockstep::zeros(shape, DType::f64),
            {.name = std::move(name),
             .trainable = false,
             .synchronization = VariableSynchronization::on_read,
             .aggregation = VariableAggregation::sum},
            at) {}

void Metric::require_step(const char* op, SourceLocation at) const {
  if (sums_.group() != current_replica_group() || !get_replica_context())
    throw FailedPrecondition(
        message(op, "metric '", name(),
                "' belongs to the steps of the strategy in whose scope it was made; make it after "
                "`auto scope = strategy.scope();` and update it in the function given to "
                "Strategy::run"),
        at);
}

void Metric::add(const Tensor& sums, SourceLocation at) { sums_.assign_add(sums, at); }

Tensor Metric::total(SourceLocation at) const {
  const RecorderScope suspended(nullptr);
  const Tensor read = sums_.read(at);
  // In a replica what was read is its own component.
  if (sums_.group() == current_replica_group())
    if (ReplicaContext* replica = get_replica_context())
      return replica->all_reduce(ReduceOp::sum, read, at);
  return read;
}

void Metric::reset_state(SourceLocation at) {
  sums_.assign(lockstep::zeros(sums_.shape(), DType::f64), at);
}

}  // namespace lockstep::metrics
