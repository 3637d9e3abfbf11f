// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

// The verbs of a strategy belong to its cross-replica side, and to no other strategy's.
void require_outside_replicas(const StrategyInterface& strategy, const char* op,
                              SourceLocation at) {
  if (!has_strategy()) return;
  if (current_replica_group().get() != &strategy)
    throw FailedPrecondition(
        message(op, "the scope or a run of another strategy is active; do not mix strategies"), at);
  if (!in_cross_replica_context())
    throw FailedPrecondition(message(op,
                                     "called in a step function; it belongs outside run: use "
                                     "get_replica_context()->all_reduce or merge_call"),
                             at);
}

// One leaf of each replica, combined; `axis` is reduced within each replica first.
Tensor reduce_leaf(StrategyInterface& strategy, ReduceOp op, std::vector<Tensor> parts,
                   std::optional<int> axis, const std::string& path, SourceLocation at) {
  constexpr const char* kOp = "Strategy::reduce";
  if (!axis) {
    for (const Tensor& part : parts)
      require(part.dtype() == parts[0].dtype() && part.shape() == parts[0].shape(), at, kOp, "at ",
              path, " the replicas hold ", name_of(parts[0].dtype()), parts[0].shape().to_string(),
              " and ", name_of(part.dtype()), part.shape().to_string(),
              "; give an axis to reduce uneven batches");
    return strategy.reduce(op, parts);
  }
  std::vector<Tensor> counts;
  for (Tensor& part : parts) {
    require(*axis >= -part.rank() && *axis < part.rank(), at, kOp, "axis ", *axis,
            " is out of range for ", part.shape().to_string(), " at ", path);
    counts.emplace_back(part.dim(*axis));
    part = sum(part, {.axes = {*axis}});
  }
  const Tensor total =
      reduce_leaf(strategy, ReduceOp::sum, std::move(parts), std::nullopt, path, at);
  if (op == ReduceOp::sum) return total;
  const Tensor rows = strategy.reduce(ReduceOp::sum, counts);
  return div(is_floating(total.dtype()) ? total : cast(total, DType::f64),
             static_cast<double>(rows.item<std::int64_t>()));
}

}  // namespace

Strategy::Strategy(std::shared_ptr<StrategyInterface> implementation)
    : implementation_(std::move(implementation)) {
  require(implementation_ != nullptr, SourceLocation{}, "Strategy",
          "expected an implementation, got null");
}

Strategy::Scope Strategy::scope(SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::scope", at);
  return Scope(implementation_);
}

Strategy::Scope::Scope(std::shared_ptr<StrategyInterface> implementation)
    : context_(implementation), random_(implementation->scope_random_state()) {}
Strategy::Scope::~Scope() = default;

void Strategy::run_replicas(const std::function<void(int)>& replica_fn,
                            const std::optional<BatchRows>& rows) const {
  require_outside_replicas(*implementation_, "Strategy::run", SourceLocation{});
  implementation_->run(replica_fn, rows);
}

std::vector<Tensor> Strategy::reduce_leaves(ReduceOp op,
                                            const std::vector<std::vector<Tensor>>& leaves,
                                            ReplicaKind kind, std::optional<int> axis,
                                            SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::reduce", at);
  require(leaves.size() == num_local_replicas(), at, "Strategy::reduce",
          "expected one value for each of ", num_local_replicas(), " local replicas, got ",
          leaves.size());
  const RecorderScope suspended(nullptr);
  if (!axis && kind != ReplicaKind::per_replica && num_replicas_in_sync() > 1) {
    require(op == ReduceOp::mean, at, "Strategy::reduce",
            kind == ReplicaKind::uniform
                ? "every replica returned the same object; its sum over replicas is "
                  "not defined: reduce with mean, or return a new value"
                : "the value is mirrored, equal on all replicas: reduce with mean");
    return leaves[0];
  }
  std::vector<Tensor> reduced;
  for (std::size_t leaf = 0; leaf < leaves[0].size(); ++leaf) {
    std::vector<Tensor> parts;
    for (const auto& replica : leaves) parts.push_back(replica[leaf]);
    reduced.push_back(reduce_leaf(*implementation_, op, std::move(parts), axis,
                                  "leaf " + std::to_string(leaf), at));
  }
  return reduced;
}

Tensor Strategy::reduce(ReduceOp op, const Variable& variable, SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::reduce", at);
  if (variable.synchronization() == VariableSynchronization::on_read)
    return implementation_->reduce(op, variable.local_values(at));
  require(op == ReduceOp::mean || num_replicas_in_sync() == 1, at, "Strategy::reduce", "variable '",
          variable.name(), "' is mirrored, equal on all replicas: reduce with mean");
  return variable.read(at);
}

Tensor Strategy::gather(const PerReplica<Tensor>& value, SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::gather", at);
  const std::vector<Tensor> parts(value.begin(), value.end());
  return concat_rows(parts);
}

void Strategy::check_structures(const std::vector<std::string>& first,
                                const std::vector<std::string>& other, std::size_t replica,
                                SourceLocation at) {
  if (first == other) return;
  std::size_t differ = 0;
  while (differ < std::min(first.size(), other.size()) && first[differ] == other[differ]) ++differ;
  const auto path = [&](const std::vector<std::string>& paths) {
    return differ < paths.size() ? paths[differ] : std::string("nothing");
  };
  throw InvalidArgument(message("Strategy::reduce", "replica 0 returned ", first.size(),
                                " tensors and replica ", replica, " returned ", other.size(),
                                "; they differ first at ", path(first), " against ", path(other)),
                        at);
}

ReplicaKind Strategy::kind_of_leaves(const std::vector<std::vector<Tensor>>& leaves) {
  if (leaves[0].empty()) return ReplicaKind::per_replica;
  for (const auto& replica : leaves) {
    if (replica.size() != leaves[0].size()) return ReplicaKind::per_replica;
    for (std::size_t i = 0; i < replica.size(); ++i)
      if (!replica[i].defined() || !leaves[0][i].defined() ||
          replica[i].key() != leaves[0][i].key())
        return ReplicaKind::per_replica;
  }
  // One key with different memory: a mirrored variable's components.
  return leaves[1][0].raw_data() == leaves[0][0].raw_data() ? ReplicaKind::uniform
                                                            : ReplicaKind::mirrored;
}

int Strategy::num_replicas_in_sync() const { return implementation_->num_replicas_in_sync(); }
std::size_t Strategy::num_local_replicas() const { return implementation_->local_devices().size(); }
WorkerGroup& Strategy::workers() const { return implementation_->workers(); }
telemetry::StepReport Strategy::step_report() const { return implementation_->step_report(); }
std::string Strategy::describe() const { return implementation_->describe(); }

}  // namespace lockstep
