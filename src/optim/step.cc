// SPDX-License-Identifier: Apache-2.0
// A step from the commit point on.
#include <lockstep/base/log.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/telemetry/step_timer.h>

#include <array>

#include "optim/clip_scale.h"
#include "optim/slots.h"

namespace lockstep::optim {
namespace {

// In a step that is being traced nobody knows yet whether it is skipped: both ways are computed.
void write_unless(const Tensor& skip, std::span<const Variable> variables,
                  const std::function<void()>& write) {
  std::vector<Tensor> before;
  before.reserve(variables.size());
  for (const Variable& variable : variables) before.push_back(variable.read());
  write();
  for (std::size_t i = 0; i < variables.size(); ++i)
    update_values(std::array{variables[i]}, [&](std::array<Tensor, 1>& value) {
      value[0] = select(skip, before[i], value[0]);
    });
}

}  // namespace

// What the updates of all variables share. Gradients are to be multiplied with `scale`, or with `clipped`
// where they are clipped by their global norm; undefined: 1.
struct Optimizer::Common {
  const Tensor &rate, &number, &skip;
  Tensor scale, clipped;
  bool decided;  // the step is not skipped, for sure
};

ReducedGradients Optimizer::committed(GradientReduction& reduction) {
  const telemetry::PhaseScope phase(telemetry::Phase::communication);
  return reduction.finish();
}

void Optimizer::run(const Step& step, const std::function<ReducedGradients()>& commit) {
  const telemetry::PhaseScope phase(telemetry::Phase::update);
  const RecorderScope suspended(nullptr);
  // Before the commit point, where a failure still leaves the weights of all replicas as they were.
  const Tensor rate = learning_rate();
  const Tensor number = iterations_.read() + 1;
  const auto slots = slots_->of(step.variables);
  ReducedGradients reduced = commit();
  check_used(step.op, step.variables, reduced.gradients, step.at);
  // The counts of calls are to stay alike, so that the replicas' own updates have a commit point too.
  if (accumulation_steps_ > 1 && !step.aggregate) agree(step);
  try {
    apply(step, slots, reduced, rate, number);
  } catch (...) {
    invalidate(step, slots);
    throw;
  }
}

void Optimizer::apply(const Step& step, const SlotLists& slots, ReducedGradients& reduced,
                      const Tensor& rate, const Tensor& number) {
  steps_attempted_.assign_add(Tensor(std::int64_t{1}));
  const Tensor scale = gradient_scale(step);
  Tensor norm;
  if (clip_.global_norm > 0) norm = norm_of(reduced.gradients, scale, step.at);
  judge(step, slots, reduced, scale, norm);
  const bool decided = reduced.skip.device().is_host();
  if (decided && reduced.skip.item<bool>()) return;
  const Common common{rate,
                      number,
                      reduced.skip,
                      scale,
                      norm.defined() ? clipped_scale(norm, clip_.global_norm, scale) : scale,
                      decided};
  for (std::size_t i = 0; i < step.variables.size(); ++i)
    if (reduced.gradients[i].defined() || ema_.use)
      update_variable(step, step.variables[i], slots[i], reduced.gradients[i],
                      reduced.rows.empty() ? Tensor() : reduced.rows[i], common);
  if (decided)
    iterations_.assign(number);
  else
    write_unless(reduced.skip, {&iterations_, 1}, [&] { iterations_.assign(number); });
}

// Of a mean over the calls, of the loss itself.
Tensor Optimizer::gradient_scale(const Step& step) const {
  Tensor scale;
  if (step.scaling) scale = step.scaling->inverse_scale();
  if (accumulation_steps_ == 1) return scale;
  const double part = 1.0 / static_cast<double>(accumulation_steps_);
  return scale.defined() ? scale * part : Tensor(part);
}

// From the votes to the verdict whether to skip the update, and what follows from it.
void Optimizer::judge(const Step& step, const SlotLists& slots, ReducedGradients& reduced,
                      const Tensor& scale, const Tensor& norm) {
  const Tensor voted = reduced.skip;
  if (step.waits.defined()) reduced.skip = logical_or(voted, step.waits);
  if (step.scaling)
    reduced.skip = step.scaling->verdict(reduced, scale, norm, step.aggregate, step.waits);
  if (accumulation_steps_ > 1) settle_accumulators(step, slots, voted);
  if (!noise_) return;
  if (step.aggregate) {
    const Tensor own = step.own_square.defined() ? step.own_square : Tensor(0.0);
    noise_->update(scale.defined() ? own * square(scale) : own,
                   square(norm.defined() ? norm : norm_of(reduced.gradients, scale, step.at)),
                   reduced.skip, accumulation_steps_, step.at);
  }
  if (accumulation_steps_ > 1)
    noise_->count_call(accumulation_steps_, voted,
                       step.waits.defined() ? step.waits : Tensor(false));
}

void Optimizer::update_variable(const Step& step, const Variable& variable,
                                std::span<const Variable> slots, Tensor& gradient,
                                const Tensor& rows, const Common& common) {
  const std::size_t averages = ema_.use ? 2 : 0, accumulators = accumulation_steps_ > 1 ? 1 : 0;
  const auto own = slots.first(slots.size() - averages - accumulators),
             average = slots.last(averages);
  Tensor scale = common.clipped;
  if (gradient.defined() && clip_.norm > 0)
    scale = clipped_scale(norm_of({&gradient, 1}, common.scale, step.at), clip_.norm, common.scale);
  if (gradient.defined() && clip_.value > 0)
    gradient = clipped_by_value(gradient, clip_.value, common.scale);
  const double decay = weight_decay_ > 0 && slots_->decays(variable) ? weight_decay_ : 0;
  const bool by_rows = rows.defined() && updates_by_rows() && decay == 0 && !ema_.use;
  if (rows.defined() && !by_rows) gradient = to_dense({gradient, rows, variable.shape()});
  const auto write = [&] {
    if (gradient.defined())
      update({variable, own, gradient, scale, common.rate, common.number, decay,
              by_rows ? rows : Tensor()});
    if (ema_.use) update_average(variable, average, common.number);
  };
  if (common.decided) return write();
  std::vector<Variable> written(own.begin(), own.end());
  written.insert(written.end(), average.begin(), average.end());
  written.push_back(variable);
  write_unless(common.skip, written, write);
}

void Optimizer::invalidate(const Step& step, const SlotLists& slots) const {
  std::vector<Variable> concerned(step.variables.begin(), step.variables.end());
  for (const auto& of_variable : slots)
    concerned.insert(concerned.end(), of_variable.begin(), of_variable.end());
  concerned.insert(concerned.end(), {iterations_, steps_attempted_});
  if (accumulated_) concerned.push_back(*accumulated_);
  if (noise_)
    concerned.insert(concerned.end(),
                     {noise_->noise_, noise_->signal_, noise_->share_, noise_->share_square_});
  if (step.scaling)
    concerned.insert(concerned.end(),
                     {step.scaling->scale_, step.scaling->good_steps_, step.scaling->skipped_steps_,
                      step.scaling->consecutive_skips_});
  std::string what = "an exception of another type";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  step.replica.invalidate(
      concerned,
      "an update failed on replica " + std::to_string(step.replica.replica_index()) + ": " + what);
}

// Some variable is used on some replica; warns once about those that are not.
void Optimizer::check_used(const char* op, std::span<const Variable> variables,
                           std::span<const Tensor> gradients, SourceLocation at) {
  const Variable* unused = nullptr;
  bool any_used = false;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (gradients[i].defined())
      any_used = true;
    else if (!unused)
      unused = &variables[i];
  require(any_used, at, op,
          "no variable has a gradient on any replica; compute the loss from the variables while "
          "the tape records");
  if (unused && !warned_.exchange(true))
    logging::warning(message(op, "variable '", unused->name(),
                             "' has no gradient on any replica and keeps its value"));
}

}  // namespace lockstep::optim
