// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "distribute/outside_replicas.h"
#include "replica/mirrored_key.h"
#include "replica/swapped_axes.h"

namespace lockstep {
namespace {

// How one leaf's components relate: a mirrored variable's value, the same object, or values of their
// own. One component alone cannot tell that others have the same object.
ReplicaKind kind_of_leaf(std::span<const Tensor> parts) {
  for (const Tensor& part : parts)
    if (!part.defined() || !parts[0].defined() || part.key() != parts[0].key())
      return ReplicaKind::per_replica;
  if (is_mirrored(parts[0])) return ReplicaKind::mirrored;
  return parts.size() > 1 ? ReplicaKind::uniform : ReplicaKind::per_replica;
}

// What is done outside replicas is done on the host.
Tensor host_copy(const Tensor& x) {
  return x.defined() && x.device().kind == DeviceKind::xla ? copy_to(x, Device{}) : x;
}

// The dtype in which a mean is taken: integers in f64, 16-bit floats in f32.
DType dtype_of_mean(DType dtype) {
  if (!is_floating(dtype)) return DType::f64;
  return size_of(dtype) == 2 ? DType::f32 : dtype;
}

// One leaf of each replica must be something to add: defined, of one numeric dtype and, without an
// axis, of one shape.
void check_parts(std::span<const Tensor> parts, bool with_axis, const std::string& path,
                 SourceLocation at) {
  constexpr const char* kOp = "Strategy::reduce";
  for (std::size_t replica = 0; replica < parts.size(); ++replica) {
    const Tensor &first = parts[0], &part = parts[replica];
    require(part.defined(), at, kOp, "at ", path, " replica ", replica,
            " holds an undefined tensor; give it a value on every replica");
    require(part.dtype() != DType::boolean, at, kOp, "at ", path, " replica ", replica,
            " holds bool, which has no sum or mean; cast it to i32 or f32 first");
    const bool same_dtype = part.dtype() == first.dtype();
    require(same_dtype && (with_axis || part.shape() == first.shape()), at, kOp, "at ", path,
            " replica 0 holds ", name_of(first.dtype()), first.shape(), " and replica ", replica,
            " ", name_of(part.dtype()), part.shape(),
            same_dtype ? "; give an axis to reduce uneven batches" : "; they must have one dtype");
  }
}

// One leaf of each replica, combined; `axis` is reduced within each replica first.
Tensor reduce_leaf(StrategyInterface& strategy, ReduceOp op, std::vector<Tensor> parts,
                   std::optional<int> axis, const std::string& path, SourceLocation at) {
  constexpr const char* kOp = "Strategy::reduce";
  check_parts(parts, axis.has_value(), path, at);
  const DType given = parts[0].dtype();
  std::vector<Tensor> counts;
  for (Tensor& part : parts) {
    if (op == ReduceOp::mean) part = cast(part, dtype_of_mean(given));
    if (!axis) continue;
    require(*axis >= -part.rank() && *axis < part.rank(), at, kOp, "axis ", *axis,
            " is out of range for ", part.shape(), " at ", path);
    counts.emplace_back(part.dim(*axis));
    part = sum(part, {.axes = {*axis}});
    require(part.shape() == parts[0].shape(), at, kOp, "at ", path, " values differ beside axis ",
            *axis, ", which leaves ", parts[0].shape(), " of replica 0's and ", part.shape(),
            " of another's; all other extents must agree");
  }
  Tensor result = strategy.reduce(axis ? ReduceOp::sum : op, parts, at);
  if (axis && op == ReduceOp::mean) {
    const Tensor rows = strategy.reduce(ReduceOp::sum, counts, at);
    result = div(result, static_cast<double>(rows.item<std::int64_t>()));
  }
  return is_floating(given) ? cast(result, given) : result;
}

// The rows of all workers, in rank order.
Tensor gather_from_workers(WorkerGroup& workers, const Tensor& own, SourceLocation at) {
  if (workers.size() == 1) return own;
  const std::string name = "Strategy::gather of " + std::string(name_of(own.dtype())) + " rows " +
                           own.shape().without_axis(0).to_string();
  std::int64_t rows = own.dim(0);
  std::vector<std::byte> sent(sizeof rows + own.bytes());
  std::memcpy(sent.data(), &rows, sizeof rows);
  if (own.bytes()) std::memcpy(sent.data() + sizeof rows, own.raw_data(), own.bytes());
  std::vector<Tensor> all;
  for (const auto& part : workers.all_gather(name, std::move(sent), at)) {
    std::memcpy(&rows, part.data(), sizeof rows);
    const std::size_t bytes = part.size() - sizeof rows;
    Buffer buffer = Buffer::allocate(own.device(), bytes);
    if (bytes) std::memcpy(buffer.data(), part.data() + sizeof rows, bytes);
    all.emplace_back(std::move(buffer), own.dtype(), own.shape().with_dim(0, rows));
  }
  return concat_rows(all);
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

void Strategy::run_replicas(const std::function<void(int)>& replica_fn,
                            const std::optional<BatchRows>& rows) const {
  require_outside_replicas(*implementation_, "Strategy::run", SourceLocation{});
  const auto alive = implementation_;  // the step may drop the last handle
  alive->run(replica_fn, rows);
}

std::vector<ValueContext> Strategy::value_contexts(SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::distribute_values_from_function", at);
  const int local = static_cast<int>(num_local_replicas()), first = workers().rank() * local;
  std::vector<ValueContext> contexts;
  for (int replica = 0; replica < local; ++replica)
    contexts.push_back({first + replica, num_replicas_in_sync()});
  return contexts;
}

InputContext Strategy::input_context(SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::distribute_datasets_from_function", at);
  return {workers().size(), workers().rank(), num_replicas_in_sync()};
}

std::vector<Tensor> Strategy::separate(std::vector<Tensor> leaves) {
  for (Tensor& leaf : leaves)
    if (leaf.defined()) leaf = leaf.with_identity(new_tensor_key(), /*trainable=*/false);
  return leaves;
}

std::vector<Tensor> Strategy::on_host(std::vector<Tensor> leaves) {
  for (Tensor& leaf : leaves) leaf = host_copy(leaf);
  return leaves;
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
    parts.reserve(leaves.size());
    for (const auto& replica : leaves) parts.push_back(replica[leaf]);
    const ReplicaKind leaf_kind = kind == ReplicaKind::per_replica ? kind_of_leaf(parts) : kind;
    for (Tensor& part : parts) part = host_copy(part);
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
  if (variable.group()) require_own(variable, "Strategy::reduce", at);
  if (variable.group() && variable.synchronization() == VariableSynchronization::on_read)
    return reduce_leaf(*implementation_, op, variable.local_values(at), std::nullopt,
                       "variable '" + variable.name() + "'", at);
  require(op == ReduceOp::mean || num_replicas_in_sync() == 1, at, "Strategy::reduce", "variable '",
          variable.name(), "' is mirrored, equal on all replicas: reduce with mean");
  return variable.read(at);
}

std::vector<Tensor> Strategy::reduce_of_workers(ReduceOp op, std::vector<Tensor> leaves,
                                                SourceLocation at) const {
  constexpr const char* kOp = "Strategy::reduce";
  require_outside_replicas(*implementation_, kOp, at);
  const int num_workers = workers().size();
  require(op == ReduceOp::mean || num_workers > 1 || num_replicas_in_sync() == 1, at, kOp,
          "got a value that no replica returned; its sum over replicas is not defined: reduce what "
          "run() returned, or with mean");
  if (num_workers == 1) return leaves;
  const RecorderScope suspended(nullptr);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Tensor& leaf = leaves[i];
    check_parts({&leaf, 1}, false, "leaf " + std::to_string(i), at);
    const DType given = leaf.dtype();
    Tensor own = host_copy(leaf);
    if (op == ReduceOp::mean) own = cast(own, dtype_of_mean(given));
    leaf = implementation_->reduce(ReduceOp::sum, {&own, 1}, at);
    if (op == ReduceOp::mean) leaf = div(leaf, static_cast<double>(num_workers));
    if (is_floating(given)) leaf = cast(leaf, given);
  }
  return leaves;
}

void Strategy::require_own(const Variable& variable, const char* op, SourceLocation at) const {
  require_outside_replicas(*implementation_, op, at);
  if (variable.group() == implementation_) return;
  throw FailedPrecondition(
      message(op, "variable '", variable.name(),
              variable.group() ? "' belongs to another strategy; do not mix strategies"
                               : "' was made outside the strategy's scope; make the model after "
                                 "`auto scope = strategy.scope();`"),
      at);
}

PerReplica<Tensor> Strategy::reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                                       const Variable& destinations, SourceLocation at) const {
  require_own(destinations, "Strategy::reduce_to", at);
  const Tensor reduced = reduce(op, value, at);
  std::vector<Tensor> copies;
  for (const Device& device : implementation_->local_devices())
    copies.push_back(device.kind == DeviceKind::xla ? reduced : copy_to(reduced, device));
  return PerReplica<Tensor>(std::move(copies), ReplicaKind::mirrored);
}

std::vector<PerReplica<Tensor>> Strategy::batch_reduce_to(
    ReduceOp op, const std::vector<std::pair<PerReplica<Tensor>, Variable>>& values,
    SourceLocation at) const {
  std::vector<PerReplica<Tensor>> reduced;
  for (const auto& [value, destinations] : values)
    reduced.push_back(reduce_to(op, value, destinations, at));
  return reduced;
}

Strategy::Scope Strategy::colocate_vars_with(const Variable& variable, SourceLocation at) const {
  require_own(variable, "Strategy::colocate_vars_with", at);
  return Scope(implementation_);
}

Tensor Strategy::gather(const PerReplica<Tensor>& value, int axis, SourceLocation at) const {
  std::vector<Tensor> parts;
  std::vector<int> swapped;
  for (const Tensor& part : value) {
    swapped = swapped_axes("Strategy::gather", part, axis, at);
    require(part.rank() == value[0].rank(), at, "Strategy::gather",
            "expected tensors of one rank, got ", value[0], " and ", part);
    const RecorderScope suspended(nullptr);
    parts.push_back(transpose(host_copy(part), swapped));
  }
  const RecorderScope suspended(nullptr);
  return transpose(gather(PerReplica<Tensor>(std::move(parts)), at), swapped);
}

Tensor Strategy::gather(const PerReplica<Tensor>& value, SourceLocation at) const {
  require_outside_replicas(*implementation_, "Strategy::gather", at);
  std::vector<Tensor> parts;
  parts.reserve(value.size());
  for (const Tensor& part : value) parts.push_back(host_copy(part));
  require(parts.size() == num_local_replicas(), at, "Strategy::gather",
          "expected one value for each of ", num_local_replicas(), " local replicas, got ",
          parts.size());
  for (std::size_t replica = 0; replica < parts.size(); ++replica) {
    const Tensor& part = parts[replica];
    require(part.defined() && part.rank() >= 1, at, "Strategy::gather",
            "expected tensors with rows (rank >= 1), got ",
            part.defined() ? part.to_string() : "an undefined one", " of replica ", replica);
    require(part.dtype() == parts[0].dtype() &&
                part.shape().without_axis(0) == parts[0].shape().without_axis(0),
            at, "Strategy::gather", "expected rows of one dtype and shape, got ",
            name_of(parts[0].dtype()), parts[0].shape(), " of replica 0 and ",
            name_of(part.dtype()), part.shape(), " of replica ", replica);
  }
  std::vector<Tensor> here;
  here.reserve(parts.size());
  for (const Tensor& part : parts) here.push_back(part.to_host());
  return gather_from_workers(implementation_->workers(), concat_rows(here), at);
}

void Strategy::check_structures(const std::vector<std::string>& first,
                                const std::vector<std::string>& other, std::size_t replica,
                                SourceLocation at) {
  if (first == other) return;
  std::size_t differ = 0;
  while (differ < std::min(first.size(), other.size()) && first[differ] == other[differ]) ++differ;
  const auto held = [&](const std::vector<std::string>& paths) {
    return differ < paths.size() ? paths[differ] : std::string("nothing");
  };
  throw InvalidArgument(
      message("Strategy::reduce", "replica 0 returned ", first.size(), " tensors and replica ",
              replica, " returned ", other.size(), ": tensor ", differ, " is ", held(first),
              " on replica 0 and ", held(other), " on replica ", replica,
              "; return one structure on all"),
      at);
}

void Strategy::check_held(const std::vector<Tensor>& reduced, const std::vector<Tensor>& held,
                          SourceLocation at) {
  for (std::size_t leaf = 0; leaf < reduced.size(); ++leaf)
    require(is_floating(held[leaf].dtype()) || !is_floating(reduced[leaf].dtype()), at,
            "Strategy::reduce", "leaf ", leaf, " is a plain integer, which cannot hold the mean, ",
            reduced[leaf], "; return a double or a Tensor from the step function");
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

void Strategy::check_components(std::size_t count, const std::optional<BatchRows>& rows) const {
  require(count == num_local_replicas(), SourceLocation{}, "Strategy::run",
          "expected a PerReplica argument of ", num_local_replicas(),
          " components, one for each local replica, got ", count,
          "; distribute the dataset by the strategy that runs the step");
  require(!rows || rows->local.size() == count, SourceLocation{}, "Strategy::run",
          "expected the rows of ", count, " local replicas, got those of ",
          rows ? rows->local.size() : 0);
}

int Strategy::num_replicas_in_sync() const { return implementation_->num_replicas_in_sync(); }
std::size_t Strategy::num_local_replicas() const { return implementation_->local_devices().size(); }
WorkerGroup& Strategy::workers() const { return implementation_->workers(); }
telemetry::StepReport Strategy::step_report() const { return implementation_->step_report(); }
std::string Strategy::describe() const { return implementation_->describe(); }

}  // namespace lockstep
