// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_reduction.h"

#include <lockstep/base/check.h>
#include <lockstep/telemetry/step_timer.h>
#include <lockstep/telemetry/telemetry.h>

#include <cstring>
#include <utility>

namespace lockstep {
namespace {

std::byte* at_element(const Buffer& arena, std::int64_t offset, DType dtype) {
  return static_cast<std::byte*>(arena.data()) + static_cast<std::size_t>(offset) * size_of(dtype);
}

}  // namespace

ArenaReduction::ArenaReduction(GradientPlan& plan, std::span<const Variable> variables,
                               Communicator& communicator, std::uint64_t run, const Tensor& skip,
                               CollectiveKey commit)
    : plan_(plan),
      variables_(variables),
      communicator_(communicator),
      commit_(commit),
      memory_(plan.memory_for(communicator.rank(), plan.next_occasion(communicator.rank(), run))),
      note_order_(communicator.rank() == 0 && plan.wants_order()),
      verdict_(variables.size() + 1),
      agreed_(variables.size() + 1) {
  for (const auto& bucket : memory_.layout->buckets) missing_.push_back(bucket.num_variables);
  pending_.reserve(missing_.size());
  verdict_.back() = skip.defined() && skip.item<bool>();
}

Buffer ArenaReduction::place(std::size_t index) {
  const auto& slot = memory_.layout->slots[index];
  const std::size_t element = size_of(variables_[index].dtype());
  return memory_.local[slot.arena].slice(static_cast<std::size_t>(slot.offset) * element,
                                         static_cast<std::size_t>(slot.count) * element);
}

void ArenaReduction::check(std::size_t index, const Tensor& gradient) const {
  const Variable& variable = variables_[index];
  require(gradient.dtype() == variable.dtype() && gradient.shape() == variable.shape(),
          SourceLocation{}, "GradientReduction::ready", "the gradient of variable '",
          variable.name(), "' must be ", name_of(variable.dtype()), variable.shape().to_string(),
          ", got ", gradient.to_string());
}

void ArenaReduction::ready(std::size_t index, const Tensor& gradient) {
  static telemetry::Counter& copied = telemetry::counter("lockstep_gradient_copied_bytes_total");
  const auto& slot = memory_.layout->slots[index];
  std::byte* const place =
      at_element(memory_.local[slot.arena], slot.offset, variables_[index].dtype());
  const std::size_t bytes =
      static_cast<std::size_t>(slot.count) * size_of(variables_[index].dtype());
  if (!gradient.defined()) {
    if (bytes) std::memset(place, 0, bytes);
  } else {
    check(index, gradient);
    verdict_[index] = 1;
    if (gradient.raw_data() != place && bytes) {
      std::memcpy(place, gradient.raw_data(), bytes);
      copied.add(static_cast<std::int64_t>(bytes));
    }
  }
  ensure(missing_[slot.bucket] > 0, "GradientReduction::ready", "variable ", index,
         " was ready before");
  if (note_order_) order_.push_back(index);
  if (--missing_[slot.bucket] == 0) submit(slot.bucket);
}

void ArenaReduction::submit(std::size_t bucket) {
  const auto& range = memory_.layout->buckets[bucket];
  const DType dtype = memory_.layout->arenas[range.arena].dtype;
  const CollectiveKey key{Channel::gradients, plan_.sequence(bucket), "gradients"};
  pending_.push_back(communicator_.all_reduce(
      key, ReduceOp::sum,
      ConstElements{at_element(memory_.local[range.arena], range.begin, dtype), range.count, dtype},
      Elements{at_element(memory_.shared[range.arena], range.begin, dtype), range.count, dtype}));
}

ReducedGradients ArenaReduction::finish() {
  for (std::size_t bucket = 0; bucket < missing_.size(); ++bucket)
    require(missing_[bucket] == 0, SourceLocation{}, "GradientReduction::finish", missing_[bucket],
            " variables of bucket ", bucket, " are not ready");
  if (note_order_) plan_.set_order(variables_, order_);
  {
    const telemetry::PhaseScope phase(telemetry::Phase::communication);
    // When this completes, every replica has submitted every bucket, so that none can fail any
    // more.
    communicator_
        .all_reduce(commit_, ReduceOp::sum, elements(std::span<const std::int32_t>(verdict_)),
                    elements(std::span(agreed_)))
        .wait();
    for (Pending& bucket : pending_) bucket.wait();
  }
  ReducedGradients reduced;
  reduced.skip = Tensor(agreed_.back() > 0);
  reduced.gradients.resize(variables_.size());
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (agreed_[i] == 0) continue;
    const auto& slot = memory_.layout->slots[i];
    const DType dtype = variables_[i].dtype();
    reduced.gradients[i] = Tensor(
        memory_.shared[slot.arena].slice(static_cast<std::size_t>(slot.offset) * size_of(dtype),
                                         static_cast<std::size_t>(slot.count) * size_of(dtype)),
        dtype, variables_[i].shape());
  }
  return reduced;
}

}  // namespace lockstep
