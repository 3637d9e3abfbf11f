// SPDX-License-Identifier: Apache-2.0
#include "distribute/replica.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <numeric>
#include <string>
#include <utility>

#include "distribute/gradient_reduction.h"
#include "replica/default_context.h"

namespace lockstep {
namespace {

ConstElements input_of(const Tensor& tensor) {
  return {tensor.raw_data(), tensor.num_elements(), tensor.dtype()};
}

}  // namespace

Replica::Replica(int index, int num_replicas, std::uint64_t seed, Communicator& communicator,
                 Baton* baton, GradientPlans& plans)
    : index_(index),
      num_replicas_(num_replicas),
      communicator_(communicator),
      baton_(baton),
      plans_(plans),
      random_{.seed = seed, .stream = static_cast<std::uint64_t>(index)} {}

void Replica::begin_step(std::uint64_t run, const BatchRows* rows) {
  run_ = run;
  rows_.reset();
  if (rows) rows_ = Rows{rows->local.at(static_cast<std::size_t>(index_)), rows->global};
  sequence_.fill(0);
  votes_ = Tensor();
}

void Replica::end_step() {
  rows_.reset();
  votes_ = Tensor();
}

CollectiveKey Replica::next_key(Channel channel, std::string_view name) {
  return {channel, sequence_[static_cast<std::size_t>(channel)]++, name};
}

void Replica::wait(Pending pending) {
  const telemetry::PhaseScope phase(telemetry::Phase::communication);
  if (baton_) baton_->hand_over(index_);
  pending.wait();
}

Tensor Replica::all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) {
  require(value.defined(), at, "ReplicaContext::all_reduce",
          "expected a tensor, got an undefined one");
  require(op == ReduceOp::sum || is_floating(value.dtype()), at, "ReplicaContext::all_reduce",
          "expected a floating dtype for mean, got ", name_of(value.dtype()));
  Buffer buffer = Buffer::allocate(current_device(), value.bytes());
  const Elements out{buffer.data(), value.num_elements(), value.dtype()};
  // Counts are compared by the communicator; shapes of one count, by way of the name, too.
  std::string name = "all_reduce";
  if (value.rank() > 0) name += " of " + value.shape().to_string();
  wait(communicator_.all_reduce(next_key(Channel::user, name), op, input_of(value), out));
  Tensor result(std::move(buffer), value.dtype(), value.shape());
  record("all_reduce", {&value}, result, [this, op](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return all_reduce(op, dy, SourceLocation{}); });
  });
  return result;
}

Tensor Replica::gathered(const Tensor& value, SourceLocation at) {
  require(value.defined() && value.rank() >= 1, at, "ReplicaContext::all_gather",
          "expected rank >= 1, got ", value);
  // Row counts first, with the shape of a row to compare by way of the name; then the rows.
  const std::int64_t rows = value.dim(0);
  const std::string name = "all_gather of rows " + value.shape().without_axis(0).to_string();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_replicas_));
  wait(communicator_.all_gather(next_key(Channel::user, name), elements(std::span(&rows, 1)),
                                elements(std::span(counts))));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const Shape shape = value.shape().with_dim(0, total);
  const std::int64_t row_elements = value.shape().without_axis(0).num_elements();
  for (std::int64_t& count : counts) count *= row_elements;
  Buffer buffer = Buffer::allocate(
      current_device(), static_cast<std::size_t>(shape.num_elements()) * size_of(value.dtype()));
  wait(communicator_.all_gather(next_key(Channel::user, "all_gather"), input_of(value),
                                Elements{buffer.data(), shape.num_elements(), value.dtype()},
                                counts));
  return Tensor(std::move(buffer), value.dtype(), shape);
}

Tensor Replica::all_gather(const Tensor& value, SourceLocation at) {
  const Tensor result = gathered(value, at);
  record("all_gather", {&value}, result, [this, value](const Tensor& dy, GradientSink& sink) {
    if (!sink.wants(0)) return;
    // This replica's rows start behind those of the replicas before it.
    const Tensor before = gathered(Tensor({1}, {value.dim(0)}), SourceLocation{});
    const auto counts = before.data<std::int64_t>();
    const std::int64_t first =
        std::accumulate(counts.begin(), counts.begin() + index_, std::int64_t{0});
    const Tensor sum = all_reduce(ReduceOp::sum, dy, SourceLocation{});
    sink.put(0, [&] {
      std::vector<std::int64_t> begin(static_cast<std::size_t>(dy.rank()), 0);
      begin[0] = first;
      const auto size = value.shape().dims();
      return slice(sum, begin, std::vector<std::int64_t>(size.begin(), size.end()));
    });
  });
  return result;
}

void Replica::vote_skip(const Tensor& skip) { add_vote(votes_, skip); }

std::unique_ptr<GradientReduction> Replica::begin_gradient_reduction(
    std::span<const Variable> variables, SourceLocation at) {
  for (const Variable& variable : variables)
    if (variable.group() != current_replica_group())
      throw FailedPrecondition(
          message("begin_gradient_reduction", "variable '", variable.name(),
                  "' was made outside the strategy's scope; make the model after `auto "
                  "scope = strategy.scope();`"),
          at);
  if (num_replicas_ == 1) return reduction_of_one(variables, votes_, at);
  ExpectedGradients expected(variables, at);
  GradientPlan& plan = plans_.plan_for(variables);
  return std::make_unique<ArenaReduction>(plan, std::move(expected), communicator_, baton_, run_,
                                          next_key(Channel::user, plan.commit_name()), votes_);
}

void Replica::merge_call(const std::function<void()>& merge, SourceLocation at) {
  require(static_cast<bool>(merge), at, "ReplicaContext::merge_call",
          "expected a function to call, got an empty one");
  wait(communicator_.barrier(next_key(Channel::user, "merge_call")));
  if (index_ == 0) {
    const RecorderScope no_recorder(nullptr);
    RandomState random = random_;
    const RandomScope suspended(random);
    const ContextScope cross_replica(current_replica_group());
    merge();
  }
  wait(communicator_.barrier(next_key(Channel::user, "merge_call/return")));
}

}  // namespace lockstep
