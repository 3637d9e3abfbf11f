// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/replica/context.h>
#include <lockstep/telemetry/step_timer.h>
#include <lockstep/tensor/state_log.h>

#include <algorithm>
#include <array>
#include <utility>

#include "optim/clip_scale.h"
#include "optim/slots.h"

namespace lockstep::optim {
namespace {

Variable counter(const char* name) {
  return Variable(Tensor(std::int64_t{0}), {.name = name, .trainable = false});
}

std::optional<Schedule> schedule_of(const LearningRate& rate) {
  return rate.schedule() ? std::optional(*rate.schedule()) : std::nullopt;
}

// At most one limit of gradients, and none negative.
Clip checked(const Clip& clip, SourceLocation at) {
  int limits = 0;
  for (const double limit : {clip.value, clip.norm, clip.global_norm}) {
    require(limit >= 0, at, "Optimizer", "expected a clipping limit of 0 or more, got ", limit);
    if (limit > 0) ++limits;
  }
  require(limits <= 1, at, "Optimizer", "expected one kind of clipping, got value ", clip.value,
          ", norm ", clip.norm, " and global_norm ", clip.global_norm);
  return clip;
}

Ema checked(const Ema& ema, SourceLocation at) {
  require(ema.momentum >= 0 && ema.momentum <= 1 && ema.overwrite_frequency >= 0, at, "Optimizer",
          "expected of Ema a momentum from 0 to 1 and an overwrite_frequency of 0 or more, got ",
          ema.momentum, " and ", ema.overwrite_frequency);
  return ema;
}

std::vector<OptimizerSlot> with_average(std::vector<OptimizerSlot> slots, const Ema& ema) {
  if (!ema.use) return slots;
  slots.push_back({.name = kAverage});
  slots.push_back({.name = kAverageBegun, .shape = [](const Shape&) { return Shape{}; }});
  return slots;
}

void check_distinct(const char* op, std::span<const Variable> variables, SourceLocation at) {
  std::vector<std::uint64_t> keys;
  keys.reserve(variables.size());
  for (const Variable& variable : variables) keys.push_back(variable.key());
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return;
  const auto which = std::find_if(variables.begin(), variables.end(),
                                  [&](const Variable& v) { return v.key() == *twice; });
  throw InvalidArgument(
      message(op, "variable '", which->name(), "' is listed twice; list each variable once"), at);
}

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

// A step that fails takes its votes with it, also where no run ends them.
class VotesOfStep {
 public:
  explicit VotesOfStep(ReplicaContext& replica) : replica_(replica) {}
  ~VotesOfStep() {
    try {
      replica_.take_vote();
    } catch (...) {  // no memory for the answer "none"
    }
  }
  VotesOfStep(const VotesOfStep&) = delete;
  VotesOfStep& operator=(const VotesOfStep&) = delete;

 private:
  ReplicaContext& replica_;
};

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, std::vector<OptimizerSlot> slots,
                     SourceLocation at)
    : weight_decay_(options.weight_decay),
      clip_(checked(options.clip, at)),
      ema_(checked(options.ema, at)),
      schedule_(schedule_of(options.learning_rate)),
      iterations_(counter("iterations")),
      steps_attempted_(counter("steps_attempted")),
      slots_(std::make_unique<Slots>(with_average(std::move(slots), ema_))) {
  require(weight_decay_ >= 0, at, "Optimizer", "expected a weight decay of 0 or more, got ",
          weight_decay_);
  if (const double* number = options.learning_rate.number()) {
    require(*number >= 0, at, "Optimizer", "expected a learning rate of 0 or more, got ", *number);
    rate_ = Variable(Tensor(*number), {.name = "learning_rate", .trainable = false}, at);
  }
}

Optimizer::~Optimizer() = default;

// The calling thread's replica, if the optimizer and the variables belong to it.
ReplicaContext& Optimizer::replica(const char* op, std::span<const Variable> variables,
                                   SourceLocation at) const {
  const auto& group = current_replica_group();
  ReplicaContext* const replica = get_replica_context();
  const auto refuse = [&](const auto&... parts) {
    throw FailedPrecondition(message(op, parts...), at);
  };
  if (!replica || (!group && iterations_.group()))
    refuse("expected a replica context; call it in the function given to Strategy::run");
  if (iterations_.group() != group)
    refuse(
        "the optimizer was made outside the scope of the strategy that runs this step; make it "
        "after `auto scope = strategy.scope();`");
  for (const Variable& variable : variables)
    if (variable.group() != group)
      refuse("variable '", variable.name(),
             "' was made outside the scope of the strategy that runs this step; make the model "
             "after `auto scope = strategy.scope();`");
  // Before the commit point, where refusing costs nothing.
  if (current_state_log())
    refuse(
        "called in a function given to recompute, which runs twice; update the variables after the "
        "gradients are there");
  require(!variables.empty(), at, op, "expected variables to update, got none");
  check_distinct(op, variables, at);
  return *replica;
}

void Optimizer::minimize(const Tensor& loss, std::span<const Variable> variables,
                         GradientTape& tape, SourceLocation at) {
  minimize_scaled(loss, variables, tape, nullptr, at);
}

void Optimizer::minimize_scaled(const Tensor& loss, std::span<const Variable> variables,
                                GradientTape& tape, LossScaleOptimizer* scaling,
                                SourceLocation at) {
  constexpr const char* kOp = "Optimizer::minimize";
  ReplicaContext& context = replica(kOp, variables, at);
  const VotesOfStep votes(context);
  if (scaling) scaling->check_in_step(at);
  const auto reduction = context.begin_gradient_reduction(variables, at);
  // What it reads and returns is gone after this statement, so that nobody else holds the weights.
  tape.gradient(
      loss, variables,
      {.target_gradient = scaling ? scaling->gradient_of_scaled(loss) : Tensor(),
       .on_ready = [&](std::size_t i, const Tensor& gradient) { reduction->ready(i, gradient); },
       .place = [&](std::size_t i) { return reduction->place(i); }},
      at);
  run({kOp, context, variables, scaling, at}, [&] { return committed(*reduction); });
}

void Optimizer::apply_gradients(std::span<const Tensor> gradients,
                                std::span<const Variable> variables, ApplyOptions options,
                                SourceLocation at) {
  apply_scaled(gradients, variables, options, nullptr, at);
}

void Optimizer::apply_scaled(std::span<const Tensor> gradients, std::span<const Variable> variables,
                             ApplyOptions options, LossScaleOptimizer* scaling, SourceLocation at) {
  constexpr const char* kOp = "Optimizer::apply_gradients";
  ReplicaContext& context = replica(kOp, variables, at);
  const VotesOfStep votes(context);
  require(gradients.size() == variables.size(), at, kOp, "expected one gradient per variable, got ",
          gradients.size(), " gradients and ", variables.size(), " variables");
  for (std::size_t i = 0; i < gradients.size(); ++i)
    require(!gradients[i].defined() || (gradients[i].shape() == variables[i].shape() &&
                                        gradients[i].dtype() == variables[i].dtype()),
            at, kOp, "the gradient of variable '", variables[i].name(), "' must be ",
            name_of(variables[i].dtype()), variables[i].shape(), ", got ", gradients[i]);
  if (scaling) scaling->check_in_step(at);
  Step step{kOp, context, variables, scaling, at};
  if (!options.aggregate) {
    step.aggregate = false;
    return run(step, [&] {
      return ReducedGradients{{gradients.begin(), gradients.end()}, context.take_vote()};
    });
  }
  const auto reduction = context.begin_gradient_reduction(variables, at);
  for (std::size_t i = 0; i < gradients.size(); ++i) reduction->ready(i, gradients[i]);
  run(step, [&] { return committed(*reduction); });
}

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
  try {
    apply(step, slots, reduced, rate, number);
  } catch (...) {
    invalidate(step, slots);
    throw;
  }
}

void Optimizer::apply(const Step& step, const SlotLists& slots, ReducedGradients& reduced,
                      const Tensor& rate, const Tensor& number) {
  const auto& variables = step.variables;
  steps_attempted_.assign_add(Tensor(std::int64_t{1}));
  Tensor scale, norm;  // what gradients are to be multiplied with; undefined: 1
  if (step.scaling) scale = step.scaling->inverse_scale();
  if (clip_.global_norm > 0) norm = norm_of(reduced.gradients, scale, step.at);
  if (step.scaling) reduced.skip = step.scaling->verdict(reduced, norm, step.aggregate);
  const bool decided = reduced.skip.device().is_host();
  if (decided && reduced.skip.item<bool>()) return;
  const Tensor common_scale =
      norm.defined() ? clipped_scale(norm, clip_.global_norm, scale) : scale;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto own = slots[i].first(slots[i].size() - (ema_.use ? 2 : 0));
    Tensor& gradient = reduced.gradients[i];
    if (!gradient.defined() && !ema_.use) continue;
    Tensor own_scale = common_scale;
    if (gradient.defined() && clip_.norm > 0)
      own_scale = clipped_scale(norm_of({&gradient, 1}, scale, step.at), clip_.norm, scale);
    if (gradient.defined() && clip_.value > 0)
      gradient = clipped_by_value(gradient, clip_.value, scale);
    const double decay = weight_decay_ > 0 && slots_->decays(variables[i]) ? weight_decay_ : 0;
    const auto write = [&] {
      if (gradient.defined()) update({variables[i], own, gradient, own_scale, rate, number, decay});
      if (ema_.use) update_average(variables[i], slots[i].last(2), number);
    };
    if (decided) {
      write();
    } else {
      std::vector<Variable> written(slots[i].begin(), slots[i].end());
      written.push_back(variables[i]);
      write_unless(reduced.skip, written, write);
    }
  }
  if (decided)
    iterations_.assign(number);
  else
    write_unless(reduced.skip, {&iterations_, 1}, [&] { iterations_.assign(number); });
}

void Optimizer::invalidate(const Step& step, const SlotLists& slots) const {
  std::vector<Variable> concerned(step.variables.begin(), step.variables.end());
  for (const auto& of_variable : slots)
    concerned.insert(concerned.end(), of_variable.begin(), of_variable.end());
  concerned.insert(concerned.end(), {iterations_, steps_attempted_});
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

void Optimizer::exclude_from_weight_decay(const std::vector<std::string>& names,
                                          SourceLocation at) {
  slots_->exclude_from_weight_decay(names, at);
}

void Optimizer::build(std::span<const Variable> variables) { slots_->of(variables); }

Variable Optimizer::slot(const Variable& variable, std::string_view name, SourceLocation at) const {
  const Variable* const slot = slots_->find(variable, name);
  require(slot, at, "Optimizer::slot", "variable '", variable.name(), "' has no slot '", name,
          "'; slots appear with the first update, or by build()");
  return *slot;
}

Tensor Optimizer::learning_rate() const {
  if (!schedule_) return rate_->read();
  Tensor rate = (*schedule_)(iterations_.read());
  require(rate.defined() && rate.num_elements() == 1 && is_floating(rate.dtype()), SourceLocation{},
          "Optimizer", "expected a schedule that gives a floating scalar, got ", rate);
  return rate;
}

void Optimizer::set_learning_rate(double rate, SourceLocation at) {
  if (schedule_)
    throw FailedPrecondition("[Optimizer::set_learning_rate] a schedule decides the learning rate",
                             at);
  require(rate >= 0, at, "Optimizer::set_learning_rate", "expected 0 or more, got ", rate);
  rate_->assign(Tensor(rate), at);
}

void Optimizer::visit_state(StateVisitor& visitor) {
  iterations_.visit_state(visitor);
  steps_attempted_.visit_state(visitor);
  if (rate_) rate_->visit_state(visitor);
  slots_->visit_state(visitor);
}

}  // namespace lockstep::optim
