// SPDX-License-Identifier: Apache-2.0
#include "distribute/replica.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <numeric>
#include <string>
#include <utility>

#include "replica/default_context.h"

namespace lockstep {
namespace {

ConstElements input_of(const Tensor& tensor) {
  return {tensor.raw_data(), tensor.num_elements(), tensor.dtype()};
}

Elements output_of(const Tensor& fresh) {
  return {fresh.buffer().data(), fresh.num_elements(), fresh.dtype()};
}

}  // namespace

Replica::Replica(Place place, std::uint64_t seed, const ReplicaLinks& links, Baton* baton,
                 GradientPlans& plans, std::span<void*> handed_over)
    : place_(place),
      links_(links),
      baton_(baton),
      plans_(plans),
      handed_over_(handed_over),
      random_{.seed = seed, .stream = static_cast<std::uint64_t>(place.global)} {}

void Replica::begin_step(std::uint64_t run, const BatchRows* rows) {
  run_ = run;
  rows_.reset();
  if (rows) rows_ = Rows{rows->local.at(static_cast<std::size_t>(place_.local)), rows->global};
  sequence_ = 0;
  votes_ = Tensor();
}

void Replica::end_step() {
  rows_.reset();
  votes_ = Tensor();
}

void Replica::invalidate(std::span<const Variable> variables, const std::string& reason) {
  broken_.emplace_back(std::vector(variables.begin(), variables.end()), reason);
}

void Replica::settle() {
  for (auto& [variables, reason] : broken_)
    for (Variable& variable : variables) variable.invalidate(reason);
  broken_.clear();
}

void Replica::require_here(const char* op, SourceLocation at) const {
  if (&require_replica_context(op, at) == this) return;
  throw FailedPrecondition(
      message(op, "expected a call from the step function of replica ", place_.global,
              ", got one from another thread; hand the context on by ReplicaContext::Inherit"),
      at);
}

CollectiveKey Replica::next_key(std::string_view name, SourceLocation at) {
  return {Channel::user, sequence_++, name, at};
}

void Replica::wait(Pending pending) {
  const telemetry::PhaseScope phase(telemetry::Phase::communication);
  if (baton_) baton_->hand_over(place_.local);
  pending.wait();
}

Tensor Replica::reduced(ReduceOp op, const Tensor& value, SourceLocation at) {
  // 16-bit sums may be out of range where the mean is not.
  const bool widen = op == ReduceOp::mean && size_of(value.dtype()) == 2;
  const Tensor in = widen ? cast(value, DType::f32) : value;
  // Counts are compared by the communicator; shapes of one count, by way of the name, too.
  std::string name = "all_reduce";
  if (widen) name += std::string(" of ") + std::string(name_of(value.dtype()));
  if (value.rank() > 0) name += " of " + value.shape().to_string();
  const CollectiveKey key = next_key(name, at);
  Tensor result;
  if (in.device().is_host()) {
    result = Tensor(Buffer::allocate(in.device(), in.bytes()), in.dtype(), in.shape());
    wait(links_.host.all_reduce(key, op, input_of(in), output_of(result)));
  } else {
    result = reduced_on_device(key, op, in);
  }
  return widen ? cast(result, value.dtype()) : result;
}

Tensor Replica::reduced_on_device(const CollectiveKey& key, ReduceOp op, const Tensor& value) {
  if (!links_.streams) return copy_to(value, value.device());
  Tensor result(Buffer::allocate(value.device(), value.bytes()), value.dtype(), value.shape());
  BucketStreams streams(value.device());
  streams.follow_backward();
  wait(links_.streams->all_reduce(key, op, input_of(value), output_of(result),
                                  streams.communication()));
  streams.lead_update();
  return result;
}

Tensor Replica::all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) {
  constexpr const char* kOp = "ReplicaContext::all_reduce";
  require_here(kOp, at);
  require(value.defined(), at, kOp, "expected a tensor, got an undefined one");
  require(value.dtype() != DType::boolean, at, kOp,
          "expected a numeric dtype, got bool; cast it to i32 first");
  require(op == ReduceOp::sum || is_floating(value.dtype()), at, kOp,
          "expected a floating dtype for mean, got ", name_of(value.dtype()));
  Tensor result;
  {
    const RecorderScope suspended(nullptr);
    result = reduced(op, value, at);
  }
  record("all_reduce", {&value}, result, [this, op, at](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return all_reduce(op, dy, at); });
  });
  return result;
}

Tensor Replica::gathered(const Tensor& value, SourceLocation at) {
  require_here("ReplicaContext::all_gather", at);
  require(value.defined() && value.rank() >= 1, at, "ReplicaContext::all_gather",
          "expected rank >= 1, got ", value);
  // By way of the host: what is gathered is small, or looked at there.
  if (!value.device().is_host()) return copy_to(gathered(value.to_host(), at), value.device());
  // Row counts first, with the shape of a row to compare by way of the name; then the rows.
  const std::int64_t rows = value.dim(0);
  const std::string name = "all_gather of rows " + value.shape().without_axis(0).to_string();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(place_.num_replicas));
  wait(links_.host.all_gather(next_key(name, at), elements(std::span(&rows, 1)),
                              elements(std::span(counts))));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const Shape shape = value.shape().with_dim(0, total);
  const std::int64_t row_elements = value.shape().without_axis(0).num_elements();
  for (std::int64_t& count : counts) count *= row_elements;
  Tensor result(Buffer::allocate(value.device(), static_cast<std::size_t>(shape.num_elements()) *
                                                     size_of(value.dtype())),
                value.dtype(), shape);
  wait(links_.host.all_gather(next_key("all_gather", at), input_of(value), output_of(result),
                              counts));
  return result;
}

Tensor Replica::all_gather(const Tensor& value, SourceLocation at) {
  Tensor result = gathered(value, at);
  record("all_gather", {&value}, result, [this, value, at](const Tensor& dy, GradientSink& sink) {
    if (!sink.wants(0)) return;
    // This replica's rows start behind those of the replicas before it.
    const Tensor before = gathered(Tensor({1}, {value.dim(0)}), at).to_host();
    const auto counts = before.data<std::int64_t>();
    const std::int64_t first =
        std::accumulate(counts.begin(), counts.begin() + place_.global, std::int64_t{0});
    const Tensor sum = all_reduce(ReduceOp::sum, dy, at);
    sink.put(0, [&] {
      std::vector<std::int64_t> begin(static_cast<std::size_t>(dy.rank()), 0);
      begin[0] = first;
      const auto size = value.shape().dims();
      return slice(sum, begin, std::vector<std::int64_t>(size.begin(), size.end()));
    });
  });
  return result;
}

std::unique_ptr<GradientReduction> Replica::begin_gradient_reduction(
    std::span<const Variable> variables, SourceLocation at) {
  require_here("begin_gradient_reduction", at);
  for (const Variable& variable : variables)
    if (variable.group() != current_replica_group())
      throw FailedPrecondition(
          message("begin_gradient_reduction", "variable '", variable.name(),
                  "' was made outside the strategy's scope; make the model after `auto "
                  "scope = strategy.scope();`"),
          at);
  if (place_.num_replicas == 1) return reduction_of_one(variables, votes_, at);
  ExpectedGradients expected(variables, at);
  GradientPlan& plan = plans_.plan_for(variables);
  return std::make_unique<ArenaReduction>(plan, std::move(expected), links_, place_.local, baton_,
                                          run_, next_key(plan.commit_name(), at), votes_);
}

void Replica::merge_all(const std::function<void(std::span<void* const>)>& merge, void* own,
                        SourceLocation at) {
  require_here("ReplicaContext::merge_call", at);
  handed_over_[static_cast<std::size_t>(place_.local)] = own;
  wait(links_.host.barrier(next_key("merge_call", at)));
  if (place_.local == 0) {
    const RecorderScope no_recorder(nullptr);
    RandomState random = random_;
    const RandomScope suspended(random);
    const ContextScope cross_replica(current_replica_group());
    merge(handed_over_);
  }
  wait(links_.host.barrier(next_key("merge_call/return", at)));
}

}  // namespace lockstep
