// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>
#include <lockstep/replica/variable.h>

#include "ops/changed_rows.h"
#include "replica/default_context.h"

namespace lockstep {
namespace {

// The slices by which every replica changes its component: what an assignment would make of them.
IndexedSlices agreed(ReplicaContext& replica, const Variable& variable, const IndexedSlices& slices,
                     SourceLocation at) {
  switch (variable.aggregation()) {
    case VariableAggregation::none:
      break;
    case VariableAggregation::sum:
      return replica.all_reduce(ReduceOp::sum, slices, at);
    case VariableAggregation::mean:
      return replica.all_reduce(ReduceOp::mean, slices, at);
    case VariableAggregation::only_first_replica: {
      if (replica.replica_index() == 0) return replica.all_reduce(ReduceOp::sum, slices, at);
      IndexedSlices none = slices;
      const auto no_rows = [](const Tensor& x) {
        const auto dims = x.shape().with_dim(0, 0).dims();
        return slice(x, std::vector<std::int64_t>(dims.size(), 0), {dims.begin(), dims.end()});
      };
      none.values = no_rows(slices.values);
      none.indices = no_rows(slices.indices);
      return replica.all_reduce(ReduceOp::sum, none, at);
    }
  }
  return slices;
}

// Rows of several replicas that are to be added up, or their mean, say nothing of a minimum.
void require_aggregated(const Variable& variable, RowChange how, const char* op,
                        SourceLocation at) {
  const bool adds = variable.aggregation() == VariableAggregation::sum ||
                    variable.aggregation() == VariableAggregation::mean;
  const bool picks = how == RowChange::min || how == RowChange::max || how == RowChange::update;
  if (adds && picks)
    throw Unimplemented(message(op, "variable '", variable.name(),
                                "' has aggregation sum or mean, by which rows are added; give it "
                                "VariableAggregation::none or only_first_replica"),
                        at);
}

Tensor change(Variable variable, RowChange how, const char* op, const IndexedSlices& slices,
              SourceLocation at) {
  const auto own = [&](const IndexedSlices& rows) {
    return variable.assign(changed_rows(op, how, variable.read(at), rows, at), at);
  };
  const auto& group = variable.group();
  if (!group || updated_component()) return own(slices);
  const bool here = current_replica_group() == group;
  ReplicaContext* const replica = here ? get_replica_context() : nullptr;
  if (variable.synchronization() == VariableSynchronization::on_read)
    throw Unimplemented(message(op, "variable '", variable.name(),
                                "' is on_read; assign() it whole, or use an on_write variable"),
                        at);
  require_aggregated(variable, how, op, at);
  const RecorderScope suspended(nullptr);
  if (replica) {
    const IndexedSlices rows = agreed(*replica, variable, slices, at);
    return replica->update(variable, [&](const Variable&) { return own(rows); });
  }
  Tensor result;
  for (std::size_t i = 0; i < group->local_devices().size(); ++i) {
    const ContextScope component(group, i);
    const Tensor changed = own(slices);
    if (i == 0) result = changed;
  }
  return result;
}

}  // namespace

Tensor Variable::scatter_add(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::add, "Variable::scatter_add", slices, at);
}
Tensor Variable::scatter_sub(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::sub, "Variable::scatter_sub", slices, at);
}
Tensor Variable::scatter_mul(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::mul, "Variable::scatter_mul", slices, at);
}
Tensor Variable::scatter_div(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::div, "Variable::scatter_div", slices, at);
}
Tensor Variable::scatter_min(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::min, "Variable::scatter_min", slices, at);
}
Tensor Variable::scatter_max(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::max, "Variable::scatter_max", slices, at);
}
Tensor Variable::scatter_update(const IndexedSlices& slices, SourceLocation at) {
  return change(*this, RowChange::update, "Variable::scatter_update", slices, at);
}

}  // namespace lockstep
