// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/mean.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <utility>

#include "replica/counted_rows.h"

namespace lockstep::metrics {

Mean::Mean(std::string name, SourceLocation at)
    : total_and_weight_(lockstep::zeros({2}, DType::f64),
                        {.name = std::move(name),
                         .trainable = false,
                         .synchronization = VariableSynchronization::on_read,
                         .aggregation = VariableAggregation::sum},
                        at) {}

void Mean::update_state(const Tensor& values, const Tensor& weight, SourceLocation at) {
  if (total_and_weight_.group() != current_replica_group() || !get_replica_context())
    throw FailedPrecondition(
        message("Mean::update_state", "metric '", name(),
                "' belongs to the steps of the strategy in whose scope it was made; make it after "
                "`auto scope = strategy.scope();` and update it in the function given to "
                "Strategy::run"),
        at);
  const RecorderScope suspended(nullptr);
  const Tensor exact = cast(values, DType::f64, at);
  Tensor total = exact;
  Tensor count(static_cast<double>(values.num_elements()));
  const auto counted = counted_rows_of(values);
  if (weight.defined() || counted) {
    Tensor factor;
    if (weight.defined()) {
      factor = broadcast_to(cast(weight, DType::f64, at), values.shape(), at);
      total = exact * factor;
    }
    if (counted) {
      if (!factor.defined()) factor = ones_like(exact);
      factor = without_padding(factor, *counted);
      total = without_padding(total, *counted);
    }
    count = sum(factor);
  }
  total_and_weight_.assign_add(stack({sum(total), count}), at);
}

Tensor Mean::result(SourceLocation at) const {
  const RecorderScope suspended(nullptr);
  Tensor state = total_and_weight_.read(at);
  // In a replica what was read is its own component.
  if (total_and_weight_.group() == current_replica_group())
    if (ReplicaContext* replica = get_replica_context())
      state = replica->all_reduce(ReduceOp::sum, state, at);
  const std::vector<Tensor> parts = split(state, 2, 0);
  const Tensor total = reshape(parts[0], Shape{}), weight = reshape(parts[1], Shape{});
  return select(equal(weight, 0), 0, total / weight);
}

void Mean::reset_state(SourceLocation at) {
  total_and_weight_.assign(lockstep::zeros({2}, DType::f64), at);
}

}  // namespace lockstep::metrics
