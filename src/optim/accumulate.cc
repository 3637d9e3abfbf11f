// SPDX-License-Identifier: Apache-2.0
// Gradients of several calls that make one update.
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/update.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include <array>

#include "optim/clip_scale.h"
#include "optim/slots.h"

namespace lockstep::optim {
namespace {

template <class F>
void change(const Variable& variable, F&& next) {
  update_values(std::array{variable},
                [&](std::array<Tensor, 1>& value) { value[0] = next(value[0]); });
}

// Whether nothing was added that is not 0: then a variable without gradient is one that is not used.
bool known_to_be_zero(const Tensor& sum) {
  if (sum.device().kind == DeviceKind::xla) return true;  // a program uses a variable, or does not
  return sum.device().is_host() && global_norm({&sum, 1}).item<float>() == 0;
}

Tensor total(const Tensor& before, const Tensor& gradient, Buffer place) {
  if (!gradient.defined()) return known_to_be_zero(before) ? Tensor() : before;
  const Placement there(std::move(place), gradient.dtype(), gradient.num_elements());
  return before + gradient;
}

}  // namespace

Optimizer::Call Optimizer::kind_of_call() const {
  if (accumulation_steps_ == 1) return Call::updates;
  const Tensor before = accumulated_->read();
  if (!before.device().is_host()) return Call::unknown;
  return before.item<std::int64_t>() + 1 < accumulation_steps_ ? Call::adds : Call::updates;
}

const Variable& Optimizer::accumulator(std::span<const Variable> slots) const {
  return slots[slots.size() - 1 - (ema_.use ? 2 : 0)];
}

// The replicas agree before anything changes, so that either all have added or none.
void Optimizer::add(const Step& step, std::span<const Tensor> gradients) {
  const RecorderScope suspended(nullptr);
  const auto slots = slots_->of(step.variables);
  Tensor skip = step.replica.take_vote();
  if (step.replica.num_replicas_in_sync() > 1)
    skip = greater(step.replica.all_reduce(ReduceOp::sum, cast(skip, DType::i32), step.at), 0);
  try {
    steps_attempted_.assign_add(Tensor(std::int64_t{1}));
    if (skip.item<bool>()) return;
    const Tensor rate(-1.0), number(1.0);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined())
        update_values(std::array{accumulator(slots[i])}, [&](auto& sum) {
          apply_update(SgdRule{}, sum, gradients[i], {.learning_rate = rate, .number = number});
        });
    accumulated_->assign_add(Tensor(std::int64_t{1}));
    if (noise_) noise_->count_call(accumulation_steps_, Tensor(false), Tensor(true));
  } catch (...) {
    invalidate(step, slots);
    throw;
  }
}

void Optimizer::agree(const Step& step) {
  if (step.replica.num_replicas_in_sync() > 1)
    step.replica.all_reduce(ReduceOp::sum, Tensor(0), step.at);
}

std::vector<Tensor> Optimizer::without_voted(const Step& step, std::span<const Tensor> gradients) {
  const RecorderScope suspended(nullptr);
  std::vector<Tensor> kept(gradients.begin(), gradients.end());
  const Tensor voted = step.replica.take_vote();
  if (voted.device().is_host() && !voted.item<bool>()) return kept;
  for (Tensor& gradient : kept)
    if (gradient.defined()) gradient = select(voted, 0, gradient);
  return kept;
}

void Optimizer::ready(Step& step, const SlotLists& slots, GradientReduction& reduction,
                      std::size_t i, const Tensor& gradient) const {
  const RecorderScope suspended(nullptr);
  const Tensor sum = accumulation_steps_ == 1
                         ? gradient
                         : total(accumulator(slots[i]).read(), gradient, reduction.place(i));
  if (noise_) add_square(step, sum);
  reduction.ready(i, sum);
  if (accumulation_steps_ == 1 || accumulated_->read().device().is_host()) return;
  if (!step.waits.defined())
    step.waits = less(accumulated_->read() + 1, static_cast<double>(accumulation_steps_));
  step.totals.resize(step.variables.size());
  step.totals[i] = sum;
}

void Optimizer::ready(Step& step, const SlotLists& slots, GradientReduction& reduction,
                      std::size_t i, const IndexedSlices& gradient) const {
  const RecorderScope suspended(nullptr);
  if (accumulation_steps_ > 1 || noise_)
    ready(step, slots, reduction, i, to_dense(gradient));
  else
    reduction.ready(i, gradient);
}

void Optimizer::add_square(Step& step, const Tensor& gradient) const {
  if (!gradient.defined()) return;
  const Tensor more = square(norm_of({&gradient, 1}, {}, step.at));
  step.own_square = step.own_square.defined() ? step.own_square + more : more;
}

void Optimizer::settle_accumulators(const Step& step, const SlotLists& slots, const Tensor& voted) {
  if (!step.waits.defined()) {
    if (voted.item<bool>()) return;
    for (const auto& of_variable : slots)
      change(accumulator(of_variable), [](const Tensor& sum) { return zeros_like(sum); });
    accumulated_->assign(Tensor(std::int64_t{0}));
    return;
  }
  for (std::size_t i = 0; i < slots.size(); ++i)
    change(accumulator(slots[i]), [&](const Tensor& before) {
      const Tensor& sum = step.totals[i].defined() ? step.totals[i] : before;
      return select(voted, before, select(step.waits, sum, 0));
    });
  change(*accumulated_,
         [&](const Tensor& n) { return select(voted, n, select(step.waits, n + 1, 0)); });
}

}  // namespace lockstep::optim
