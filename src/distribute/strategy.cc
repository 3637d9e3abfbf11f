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

// How one leaf's components relate: the same object, a mirrored variable's components (one key with
// different memory), or values of their own.
ReplicaKind kind_of_leaf(std::span<const Tensor> parts) {
  for (const Tensor& part : parts)
    if (!part.defined() || !parts[0].defined() || part.key() != parts[0].key())
      return ReplicaKind::per_replica;
  if (parts.size() < 2) return ReplicaKind::per_replica;
  return parts[1].raw_data() == parts[0].raw_data() ? ReplicaKind::uniform : ReplicaKind::mirrored;
}

// The dtype in which a mean is taken: integers in f64, 16-bit floats in f32.
DType dtype_of_mean(DType dtype) {
  if (!is_floating(dtype)) return DType::f64;
  return size_of(dtype) == 2 ? DType::f32 : dtype;
}

// One leaf of each replica, combined; `axis` is reduced within each replica first.
Tensor reduce_leaf(StrategyInterface& strategy, ReduceOp op, std::vector<Tensor> parts,
                   std::optional<int> axis, const std::string& path, SourceLocation at) {
  constexpr const char* kOp = "Strategy::reduce";
  const DType given = parts[0].dtype();
  std::vector<Tensor> counts;
  for (Tensor& part : parts) {
    require(part.dtype() == given && (axis || part.shape() == parts[0].shape()), at, kOp, "at ",
            path, " the replicas hold ", name_of(given), parts[0].shape(), " and ",
            name_of(part.dtype()), part.shape(), "; give an axis to reduce uneven batches");
    if (op == ReduceOp::mean) part = cast(part, dtype_of_mean(given));
    if (!axis) continue;
    require(*axis >= -part.rank() && *axis < part.rank(), at, kOp, "axis ", *axis,
            " is out of range for ", part.shape(), " at ", path);
    counts.emplace_back(part.dim(*axis));
    part = sum(part, {.axes = {*axis}});
  }
  for (const Tensor& part : parts)
    require(part.shape() == parts[0].shape(), at, kOp, "at ", path,
            " the replicas' values differ beside the axis: ", parts[0].shape(), " and ",
            part.shape());
  Tensor result = strategy.reduce(axis ? ReduceOp::sum : op, parts);
  if (axis && op == ReduceOp::mean) {
    const Tensor rows = strategy.reduce(ReduceOp::sum, counts);
    result = div(result, static_cast<double>(rows.item<std::int64_t>()));
  }
  return is_floating(given) ? cast(result, given) : result;
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
  const auto alive = implementation_;  // the step may drop the last handle
  alive->run(replica_fn, rows);
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
  std::vector<Tensor> reduced;
  for (std::size_t leaf = 0; leaf < leaves[0].size(); ++leaf) {
    std::vector<Tensor> parts;
    for (const auto& replica : leaves) parts.push_back(replica[leaf]);
    const ReplicaKind leaf_kind = kind == ReplicaKind::per_replica ? kind_of_leaf(parts) : kind;
    if (axis || leaf_kind == ReplicaKind::per_replica || num_replicas_in_sync() == 1) {
      reduced.push_back(reduce_leaf(*implementation_, op, std::move(parts), axis,
                                    "leaf " + std::to_string(leaf), at));
      continue;
    }
    require(op == ReduceOp::mean, at, "Strategy::reduce", "leaf ", leaf,
            leaf_kind == ReplicaKind::uniform
                ? ": every replica returned the same object; its sum over replicas is not defined: "
                  "reduce with mean, or return a new value"
                : " is mirrored, equal on all replicas: reduce with mean");
    reduced.push_back(parts[0]);
  }
  return reduced;
}

Tensor Strategy::reduce(ReduceOp op, const Variable& variable, SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::reduce", at);
  if (variable.group() && variable.group() != implementation_)
    throw FailedPrecondition(message("Strategy::reduce", "variable '", variable.name(),
                                     "' belongs to another strategy; do not mix strategies"),
                             at);
  if (variable.group() && variable.synchronization() == VariableSynchronization::on_read)
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
  ReplicaKind kind = ReplicaKind::per_replica;
  for (std::size_t leaf = 0; leaf < leaves[0].size(); ++leaf) {
    std::vector<Tensor> parts;
    for (const auto& replica : leaves) {
      if (replica.size() != leaves[0].size()) return ReplicaKind::per_replica;
      parts.push_back(replica[leaf]);
    }
    const ReplicaKind of_leaf = kind_of_leaf(parts);
    if (of_leaf == ReplicaKind::per_replica || (leaf > 0 && of_leaf != kind))
      return ReplicaKind::per_replica;
    kind = of_leaf;
  }
  return kind;
}

void Strategy::check_components(std::size_t count) const {
  require(count == num_local_replicas(), SourceLocation{}, "Strategy::run",
          "expected a PerReplica argument of ", num_local_replicas(),
          " components, one for each local replica, got ", count,
          "; distribute the dataset by the strategy that runs the step");
}

int Strategy::num_replicas_in_sync() const { return implementation_->num_replicas_in_sync(); }
std::size_t Strategy::num_local_replicas() const { return implementation_->local_devices().size(); }
WorkerGroup& Strategy::workers() const { return implementation_->workers(); }
telemetry::StepReport Strategy::step_report() const { return implementation_->step_report(); }
std::string Strategy::describe() const { return implementation_->describe(); }

}  // namespace lockstep
