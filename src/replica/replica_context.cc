// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/replica_context.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>

#include <algorithm>

#include "replica/default_context.h"
#include "replica/swapped_axes.h"

namespace lockstep {

ReplicaContext::~ReplicaContext() = default;

Tensor ReplicaContext::all_gather(const Tensor& value, int axis, SourceLocation at) {
  const std::vector<int> order = swapped_axes("ReplicaContext::all_gather", value, axis, at);
  return order[0] == 0 ? all_gather(value, at)
                       : transpose(all_gather(transpose(value, order), at), order);
}

IndexedSlices ReplicaContext::all_reduce(ReduceOp op, const IndexedSlices& value,
                                         SourceLocation at) {
  constexpr const char* kOp = "ReplicaContext::all_reduce";
  const Tensor &values = value.values, &indices = value.indices;
  require(values.defined() && indices.defined() && indices.rank() == 1 && value.shape.rank() > 0 &&
              values.shape() == value.shape.with_dim(0, indices.dim(0)),
          at, kOp, "expected a row of values for each index into ", value.shape, ", got values ",
          values.defined() ? values.to_string() : "undefined", " and indices ",
          indices.defined() ? indices.to_string() : "undefined");
  require(op == ReduceOp::sum || is_floating(values.dtype()), at, kOp,
          "expected a floating dtype for mean, got ", name_of(values.dtype()));
  if (values.device().is_host()) {  // traced steps are one program, of one shape
    const RecorderScope suspended(nullptr);
    const Tensor extents = all_gather(Tensor({1}, {value.shape[0]}), at);
    for (const std::int64_t rows : extents.to_vector<std::int64_t>())
      require(rows == value.shape[0], at, kOp,
              "expected slices of one shape on every replica, got ", value.shape, " here and ",
              rows, " rows on another replica");
  }
  const Tensor all = all_gather(values, at);
  return {.values = op == ReduceOp::mean ? all / static_cast<double>(num_replicas_in_sync()) : all,
          .indices = all_gather(indices, at),
          .shape = value.shape};
}

std::optional<ReplicaContext::CountedRows> ReplicaContext::counted_rows(std::int64_t) const {
  return std::nullopt;
}

Tensor ReplicaContext::global_count(std::int64_t local) { return global_count(Tensor(local)); }
Tensor ReplicaContext::global_count(const Tensor& local) {
  const RecorderScope suspended(nullptr);
  return all_reduce(ReduceOp::sum, local);
}

void ReplicaContext::vote_skip(const Tensor& skip) {
  require(skip.defined() && skip.dtype() == DType::boolean && skip.num_elements() == 1,
          SourceLocation{}, "ReplicaContext::vote_skip", "expected a boolean scalar, got ",
          skip.to_string());
  votes_ = votes_.defined() ? logical_or(votes_, skip) : skip;
}
Tensor ReplicaContext::take_vote() { return taken(votes_); }

void ReplicaContext::merge_call(const std::function<void()>& merge, SourceLocation at) {
  require(static_cast<bool>(merge), at, "ReplicaContext::merge_call",
          "expected a function to call, got an empty one");
  merge_all([&](std::span<void* const>) { merge(); }, nullptr, at);
}

const std::shared_ptr<ReplicaGroup>& ReplicaContext::group_of(const Variable& variable) const {
  constexpr const char* kOp = "ReplicaContext::update";
  if (&require_replica_context(kOp, SourceLocation{}) != this)
    throw FailedPrecondition(message(kOp, "expected a call from the step function of replica ",
                                     replica_index(), ", got one from another thread"),
                             SourceLocation{});
  if (variable.group() != current_replica_group())
    throw FailedPrecondition(message(kOp, "variable '", variable.name(),
                                     "' was made outside the strategy's scope; make the model "
                                     "after `auto scope = strategy.scope();`"),
                             SourceLocation{});
  return variable.group();
}

}  // namespace lockstep
