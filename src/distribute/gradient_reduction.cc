// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_reduction.h"

#include <lockstep/ops/scatter.h>
#include <lockstep/replica/context.h>
#include <lockstep/telemetry/step_timer.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/accelerator.h"
#include "distribute/bucket_fault.h"
#include "replica/row_gradients.h"

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
      verdict_(expected_.size() + 1 +
               memory_.layout->by_rows.size() * static_cast<std::size_t>(links.host.size())),
      agreed_(verdict_.size()),
      rows_(memory_.layout->by_rows.size()) {
  for (const auto& bucket : memory_.layout->buckets) missing_.push_back(bucket.num_variables);
  pending_.reserve(missing_.size());
}

Buffer ArenaReduction::place(std::size_t index) {
  expected_.check_index("place", index);
  const auto& slot = memory_.layout->slots[index];
  if (slot.by_rows) return {};
  const std::size_t element = size_of(expected_[index].dtype());
  return memory_.local[slot.arena].slice(static_cast<std::size_t>(slot.offset) * element,
                                         static_cast<std::size_t>(slot.count) * element);
}

void ArenaReduction::ready(std::size_t index, const Tensor& gradient) {
  static telemetry::Counter& copied = telemetry::counter("lockstep_gradient_copied_bytes_total");
  expected_.check_index("ready", index);
  const auto& slot = memory_.layout->slots[index];
  if (slot.by_rows && gradient.defined()) {
    const std::int64_t rows = expected_[index].shape()[0];
    return ready(index, IndexedSlices{gradient, range(0, rows), gradient.shape()});
  }
  expected_.arrived(index, gradient);
  if (slot.by_rows) return;
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

void ArenaReduction::ready(std::size_t index, const IndexedSlices& gradient) {
  expected_.check_rows(index, gradient);
  if (!memory_.layout->slots[index].by_rows) {
    GradientReduction::ready(index, gradient);
    if (memory_.guessed && better_as_rows(gradient, links_.host.size()))
      order_.back() = ~order_.back();
    return;
  }
  expected_.arrived(index, gradient);
  const auto& by_rows = memory_.layout->by_rows;
  const auto place = std::find(by_rows.begin(), by_rows.end(), index) - by_rows.begin();
  rows_[static_cast<std::size_t>(place)] = coalesce(gradient);
  verdict_[index] = 1;
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
  verdict_[expected_.size()] = skip.defined() && skip.item<bool>();
  count_rows();
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
    // more, unless memory for rows is short: then all do, before anything is updated.
    commit.wait();
    for (Pending& bucket : pending_) bucket.wait();
    if (links_.streams) streams_.lead_update();
    gather_rows();
  }
  if (memory_.guessed) plan_.set_order(expected_.variables(), order_);
  return sums();
}

void ArenaReduction::count_rows() {
  const auto ranks = static_cast<std::size_t>(links_.host.size());
  const auto rank = static_cast<std::size_t>(links_.host.rank());
  for (std::size_t k = 0; k < rows_.size(); ++k)
    if (rows_[k].defined())
      verdict_[expected_.size() + 1 + k * ranks + rank] =
          static_cast<std::int32_t>(rows_[k].indices.dim(0));
}

void ArenaReduction::gather_rows() {
  if (rows_.empty()) return;
  struct Gather {
    Tensor all;
    std::vector<std::int64_t> parts;
    Pending pending;
  };
  const auto ranks = static_cast<std::size_t>(links_.host.size());
  // All ranks' rows of `own`, which is undefined where this one has none.
  const auto begin = [&](std::int64_t sequence, const Tensor& own, DType dtype, const Shape& shape,
                         std::span<const std::int32_t> counts) {
    Gather gather;
    const std::int64_t row = shape.without_axis(0).num_elements();
    for (const std::int32_t count : counts) gather.parts.push_back(count * row);
    const Shape all =
        shape.with_dim(0, std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    const auto bytes = static_cast<std::size_t>(all.num_elements()) * size_of(dtype);
    gather.all = Tensor(Buffer::allocate(links_.device, bytes), dtype, all);
    if (all[0] == 0) return gather;
    const ConstElements in{own.defined() ? own.raw_data() : nullptr,
                           own.defined() ? own.num_elements() : 0, dtype};
    gather.pending = links_.host.all_gather(
        {Channel::gradients, sequence, "rows of gradients", commit_.at}, in,
        {gather.all.buffer().data(), all.num_elements(), dtype}, gather.parts);
    return gather;
  };
  std::vector<Gather> values(rows_.size()), indices(rows_.size());
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    const std::size_t i = memory_.layout->by_rows[k];
    if (agreed_[i] == 0) continue;
    const Shape& shape = expected_[i].shape();
    const auto counts = std::span(agreed_).subspan(expected_.size() + 1 + k * ranks, ranks);
    values[k] =
        begin(plan_.values_sequence(i), rows_[k].values, expected_[i].dtype(), shape, counts);
    indices[k] =
        begin(plan_.indices_sequence(i), rows_[k].indices, DType::i64, Shape{shape[0]}, counts);
  }
  if (baton_) baton_->hand_over(local_replica_);
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    if (!values[k].all.defined()) continue;
    values[k].pending.wait();
    indices[k].pending.wait();
    rows_[k] =
        coalesce({values[k].all, indices[k].all, expected_[memory_.layout->by_rows[k]].shape()});
  }
}

ReducedGradients ArenaReduction::sums() const {
  ReducedGradients reduced;
  {
    const DeviceScope host(current_host_device());  // looked at there
    reduced.skip = Tensor(agreed_[expected_.size()] > 0);
  }
  reduced.gradients.resize(expected_.size());
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const auto& slot = memory_.layout->slots[i];
    if (agreed_[i] == 0 || slot.by_rows) continue;
    const DType dtype = expected_[i].dtype();
    reduced.gradients[i] = Tensor(
        memory_.shared[slot.arena].slice(static_cast<std::size_t>(slot.offset) * size_of(dtype),
                                         static_cast<std::size_t>(slot.count) * size_of(dtype)),
        dtype, expected_[i].shape());
  }
  reduced.rows.resize(expected_.size());
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    const std::size_t i = memory_.layout->by_rows[k];
    reduced.gradients[i] = rows_[k].values;
    reduced.rows[i] = rows_[k].indices;
  }
  return reduced;
}

}  // namespace lockstep
