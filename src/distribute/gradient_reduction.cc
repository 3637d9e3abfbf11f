// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_reduction.h"

#include <lockstep/replica/context.h>
#include <lockstep/telemetry/step_timer.h>
#include <lockstep/telemetry/telemetry.h>

#include <utility>

#include "device/accelerator.h"
#include "distribute/bucket_fault.h"

namespace lockstep {
namespace {

std::byte* at_element(const Buffer& arena, std::int64_t offset, DType dtype) {
  return static_cast<std::byte*>(arena.data()) + static_cast<std::size_t>(offset) * size_of(dtype);
}

}  // namespace

ArenaReduction::ArenaReduction(GradientPlan& plan, ExpectedGradients expected,
                               const ReplicaLinks& links, int local_replica, Baton* baton,
                               std::uint64_t run, CollectiveKey commit, Tensor& votes)
    : plan_(plan),
      expected_(std::move(expected)),
      links_(links),
      local_replica_(local_replica),
      streams_(links.device),
      baton_(baton),
      commit_(commit),
      votes_(votes),
      memory_(plan.memory_for(local_replica, plan.next_occasion(local_replica, run))),
      verdict_(expected_.size() + 1),
      agreed_(expected_.size() + 1) {
  for (const auto& bucket : memory_.layout->buckets) missing_.push_back(bucket.num_variables);
  pending_.reserve(missing_.size());
}

Buffer ArenaReduction::place(std::size_t index) {
  expected_.check_index("place", index);
  const auto& slot = memory_.layout->slots[index];
  const std::size_t element = size_of(expected_[index].dtype());
  return memory_.local[slot.arena].slice(static_cast<std::size_t>(slot.offset) * element,
                                         static_cast<std::size_t>(slot.count) * element);
}

void ArenaReduction::ready(std::size_t index, const Tensor& gradient) {
  static telemetry::Counter& copied = telemetry::counter("lockstep_gradient_copied_bytes_total");
  expected_.arrived(index, gradient);
  const auto& slot = memory_.layout->slots[index];
  const DType dtype = expected_[index].dtype();
  std::byte* const place = at_element(memory_.local[slot.arena], slot.offset, dtype);
  const std::size_t bytes = static_cast<std::size_t>(slot.count) * size_of(dtype);
  if (!gradient.defined()) {
    zero_bytes(links_.device, place, bytes);
  } else {
    verdict_[index] = 1;
    if (gradient.raw_data() != place && bytes) {
      copy_bytes(links_.device, place, gradient.device(), gradient.raw_data(), bytes);
      copied.add(static_cast<std::int64_t>(bytes));
    }
  }
  if (memory_.guessed) order_.push_back(static_cast<std::int64_t>(index));
  if (--missing_[slot.bucket] == 0) submit_complete(slot.bucket);
}

void ArenaReduction::submit_complete(std::size_t bucket) {
  if (!links_.streams) return submit(bucket);
  const bool faulty = links_.host.rank() == 1;
  const auto next_is_complete = [&] {
    return next_bucket_ < missing_.size() && missing_[next_bucket_] == 0;
  };
  if (faulty && injected_bucket_fault == BucketFault::other_order && next_bucket_ == 0) {
    if (missing_.size() < 2 || missing_[0] + missing_[1] > 0) return;
    submit(1);
    submit(0);
    next_bucket_ = 2;
  }
  for (; next_is_complete(); ++next_bucket_)
    if (!faulty || injected_bucket_fault != BucketFault::skipped_bucket || next_bucket_ > 0)
      submit(next_bucket_);
}

void ArenaReduction::submit(std::size_t bucket) {
  auto range = memory_.layout->buckets[bucket];
  if (links_.host.rank() == 1 && bucket == 0 && injected_bucket_fault == BucketFault::short_count)
    --range.count;
  const DType dtype = memory_.layout->arenas[range.arena].dtype;
  const CollectiveKey key{Channel::gradients, plan_.sequence(bucket), "gradients", commit_.at};
  const ConstElements in{at_element(memory_.local[range.arena], range.begin, dtype), range.count,
                         dtype};
  const Elements out{at_element(memory_.shared[range.arena], range.begin, dtype), range.count,
                     dtype};
  if (links_.streams) streams_.follow_backward();
  Communicator& communicator = links_.streams ? *links_.streams : links_.host;
  pending_.push_back(
      communicator.all_reduce(key, ReduceOp::sum, in, out, streams_.communication()));
}

ReducedGradients ArenaReduction::finish() {
  require_replica_context("GradientReduction::finish", commit_.at);
  expected_.check_complete();
  const Tensor skip = std::exchange(votes_, Tensor());
  verdict_.back() = skip.defined() && skip.item<bool>();
  // All replicas of all workers will lay gradients out as they became ready on replica 0.
  if (memory_.guessed)
    pending_.push_back(links_.host.broadcast(
        {Channel::gradients, plan_.order_sequence(), "order of gradients", commit_.at}, 0,
        elements(std::span(order_))));
  {
    const telemetry::PhaseScope phase(telemetry::Phase::communication);
    Pending commit = links_.host.all_reduce(commit_, ReduceOp::sum,
                                            elements(std::span<const std::int32_t>(verdict_)),
                                            elements(std::span(agreed_)));
    if (baton_) baton_->hand_over(local_replica_);
    // When this completes, every replica has submitted every bucket, so that none can fail any
    // more.
    commit.wait();
    for (Pending& bucket : pending_) bucket.wait();
    if (links_.streams) streams_.lead_update();
  }
  if (memory_.guessed) plan_.set_order(expected_.variables(), order_);
  return sums();
}

ReducedGradients ArenaReduction::sums() const {
  ReducedGradients reduced;
  {
    const DeviceScope host(current_host_device());  // looked at there
    reduced.skip = Tensor(agreed_.back() > 0);
  }
  reduced.gradients.resize(expected_.size());
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (agreed_[i] == 0) continue;
    const auto& slot = memory_.layout->slots[i];
    const DType dtype = expected_[i].dtype();
    reduced.gradients[i] = Tensor(
        memory_.shared[slot.arena].slice(static_cast<std::size_t>(slot.offset) * size_of(dtype),
                                         static_cast<std::size_t>(slot.count) * size_of(dtype)),
        dtype, expected_[i].shape());
  }
  return reduced;
}

}  // namespace lockstep
