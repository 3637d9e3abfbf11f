// SPDX-License-Identifier: Apache-2.0
#include "distribute/traced_replica.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>

#include <map>
#include <utility>

#include "device/xla/trace.h"
#include "ops/traced.h"
#include "replica/default_context.h"
#include "replica/expected_gradients.h"

namespace lockstep {
namespace {

// Collectives belong to the program of the calling replica.
void require_here(const ReplicaContext* replica, const char* op, SourceLocation at) {
  if (xla::current_trace() && get_replica_context() == replica) return;
  throw FailedPrecondition(
      message(op, "expected a call from the step function of replica ", replica->replica_index(),
              ", got one from another thread or after the step"),
      at);
}

// All gradients of a step in one collective per dtype.
class TracedReduction final : public GradientReduction {
 public:
  TracedReduction(ExpectedGradients expected, int num_replicas, Tensor& votes)
      : expected_(std::move(expected)),
        num_replicas_(num_replicas),
        votes_(votes),
        gradients_(expected_.size()) {}

  Buffer place(std::size_t index) override {
    expected_.check_index("place", index);
    return {};
  }
  using GradientReduction::ready;
  void ready(std::size_t index, const Tensor& gradient) override {
    expected_.arrived(index, gradient);
    gradients_[index] = gradient;
  }
  ReducedGradients finish() override {
    expected_.check_complete();
    const RecorderScope suspended(nullptr);
    std::map<DType, std::vector<std::size_t>> by_dtype;
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      if (gradients_[i].defined()) by_dtype[gradients_[i].dtype()].push_back(i);
    for (const auto& [dtype, indices] : by_dtype) {
      std::vector<Tensor> values;
      values.reserve(indices.size());
      for (const std::size_t i : indices) values.push_back(gradients_[i]);
      const auto sums = traced::all_reduce(values, num_replicas_, ReduceOp::sum);
      for (std::size_t k = 0; k < indices.size(); ++k) gradients_[indices[k]] = sums[k];
    }
    return {std::move(gradients_), skip()};
  }

 private:
  Tensor skip() {
    const Tensor own = std::exchange(votes_, Tensor());
    if (!own.defined()) return Tensor(false);
    const Tensor counted = cast(own, DType::i32);
    return greater(traced::all_reduce({&counted, 1}, num_replicas_, ReduceOp::sum)[0], 0);
  }

  ExpectedGradients expected_;
  const int num_replicas_;
  Tensor& votes_;
  std::vector<Tensor> gradients_;
};

}  // namespace

TracedReplica::TracedReplica(int index, int num_replicas, std::uint64_t seed)
    : index_(index),
      num_replicas_(num_replicas),
      random_{.seed = seed, .stream = static_cast<std::uint64_t>(index)} {}

void TracedReplica::begin_step(const BatchRows* rows) {
  end_step();
  if (!rows) return;
  rows_ = Rows{rows->local.at(static_cast<std::size_t>(index_)), rows->global};
  padded_rows_ = rows->padded;
}

void TracedReplica::end_step() {
  rows_.reset();
  padded_rows_ = 0;
  votes_ = Tensor();
}

std::optional<ReplicaContext::CountedRows> TracedReplica::counted_rows(std::int64_t rows) const {
  if (!rows_ || padded_rows_ == 0 || rows != padded_rows_) return std::nullopt;
  return CountedRows{traced::first_rows(rows, rows_->local), traced::varying_number(rows_->global)};
}

// A vote that is known here may be another one on each replica, all of which trace one program.
Tensor TracedReplica::take_vote() {
  if (!votes_.defined()) return ReplicaContext::take_vote();
  const Tensor vote = ReplicaContext::take_vote();
  if (!vote.device().is_host()) return vote;
  return greater(traced::varying_number(vote.item<bool>() ? 1 : 0), 0);
}

Tensor TracedReplica::all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) {
  constexpr const char* kOp = "ReplicaContext::all_reduce";
  require(value.defined() && value.dtype() != DType::boolean, at, kOp,
          "expected a numeric tensor, got ", value.to_string());
  require(op == ReduceOp::sum || is_floating(value.dtype()), at, kOp,
          "expected a floating dtype for mean, got ", name_of(value.dtype()));
  require_here(this, kOp, at);
  Tensor result = traced::all_reduce({&value, 1}, num_replicas_, op)[0];
  record("all_reduce", {&value}, result, [this, op](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return all_reduce(op, dy, SourceLocation{}); });
  });
  return result;
}

namespace {

// The gradient of all_gather, whose own is all_gather.
Tensor scattered(const Tensor& dy, ReplicaContext& replica) {
  Tensor result = traced::reduce_scatter(dy, replica.num_replicas_in_sync());
  record("all_gather_gradient", {&dy}, result, [&replica](const Tensor& d, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return replica.all_gather(d, SourceLocation{}); });
  });
  return result;
}

}  // namespace

Tensor TracedReplica::all_gather(const Tensor& value, SourceLocation at) {
  constexpr const char* kOp = "ReplicaContext::all_gather";
  require(value.defined() && value.rank() >= 1, at, kOp, "expected rank >= 1, got ",
          value.to_string());
  require_here(this, kOp, at);
  Tensor result = traced::all_gather(value, num_replicas_);
  record("all_gather", {&value}, result, [this](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return scattered(dy, *this); });
  });
  return result;
}

std::unique_ptr<GradientReduction> TracedReplica::begin_gradient_reduction(
    std::span<const Variable> variables, SourceLocation at) {
  for (const Variable& variable : variables)
    if (variable.group() != current_replica_group())
      throw FailedPrecondition(
          message("begin_gradient_reduction", "variable '", variable.name(),
                  "' was made outside the strategy's scope; make the model after `auto "
                  "scope = strategy.scope();`"),
          at);
  require_here(this, "begin_gradient_reduction", at);
  return std::make_unique<TracedReduction>(ExpectedGradients(variables, at), num_replicas_, votes_);
}

void TracedReplica::merge_all(const std::function<void(std::span<void* const>)>&, void*,
                              SourceLocation at) {
  throw Unimplemented(
      "[ReplicaContext::merge_call] is not offered on TPUs, where a step is one program; do it "
      "outside run, or by all_reduce",
      at);
}

}  // namespace lockstep
