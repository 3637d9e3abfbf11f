// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/state_log.h>

#include <algorithm>
#include <utility>

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

std::int64_t checked_steps(std::int64_t steps, SourceLocation at) {
  require(steps >= 1, at, "Optimizer", "expected gradient_accumulation_steps of 1 or more, got ",
          steps);
  return steps;
}

// The rule's own slots come first, then the accumulator, then the average.
std::vector<OptimizerSlot> with_common(std::vector<OptimizerSlot> slots, const Ema& ema,
                                       std::int64_t accumulation_steps) {
  if (accumulation_steps > 1) slots.push_back({.name = kAccumulator, .summed = true});
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

// What stands for a reduction where each replica applies its own gradients.
class OwnGradients final : public GradientReduction {
 public:
  OwnGradients(std::size_t count, ReplicaContext& replica) : gradients_(count), replica_(replica) {}
  Buffer place(std::size_t) override { return {}; }
  using GradientReduction::ready;
  void ready(std::size_t index, const Tensor& gradient) override { gradients_[index] = gradient; }
  ReducedGradients finish() override { return {std::move(gradients_), replica_.take_vote()}; }

 private:
  std::vector<Tensor> gradients_;
  ReplicaContext& replica_;
};

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
      accumulation_steps_(checked_steps(options.gradient_accumulation_steps, at)),
      schedule_(schedule_of(options.learning_rate)),
      iterations_(counter("iterations")),
      steps_attempted_(counter("steps_attempted")),
      slots_(std::make_unique<Slots>(with_common(std::move(slots), ema_, accumulation_steps_))) {
  if (accumulation_steps_ > 1) accumulated_ = counter("accumulated_steps");
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
  Step step{kOp, context, variables, scaling, at};
  check_before(step);
  const Tensor start = scaling ? scaling->gradient_of_scaled(loss) : Tensor();
  if (kind_of_call() == Call::adds)
    return add(step, tape.gradient(loss, variables, {.target_gradient = start}, at));
  const SlotLists slots = accumulation_steps_ > 1 ? slots_->of(variables) : SlotLists();
  const auto reduction = context.begin_gradient_reduction(variables, at);
  // What it reads and returns is gone after this statement, so that nobody else holds the weights.
  tape.gradient(
      loss, variables,
      {.target_gradient = start,
       .on_ready = [&](std::size_t i,
                       const Tensor& gradient) { ready(step, slots, *reduction, i, gradient); },
       .on_slices =
           [&](std::size_t i, const IndexedSlices& gradient) {
             ready(step, slots, *reduction, i, gradient);
           },
       .place =
           [&](std::size_t i) { return accumulation_steps_ > 1 ? Buffer() : reduction->place(i); }},
      at);
  run(step, [&] { return committed(*reduction); });
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
  Step step{kOp, context, variables, scaling, at, options.aggregate};
  check_before(step);
  std::vector<Tensor> kept;
  if (!step.aggregate && accumulation_steps_ > 1) gradients = kept = without_voted(step, gradients);
  if (kind_of_call() == Call::adds) return add(step, gradients);
  const SlotLists slots = accumulation_steps_ > 1 ? slots_->of(variables) : SlotLists();
  const auto reduction = options.aggregate
                             ? context.begin_gradient_reduction(variables, at)
                             : std::make_unique<OwnGradients>(variables.size(), context);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    ready(step, slots, *reduction, i, gradients[i]);
  run(step, [&] { return committed(*reduction); });
}

// What else a step needs, before the commit point, where refusing costs nothing.
void Optimizer::check_before(const Step& step) {
  if (step.scaling)
    step.scaling->check_in_step(step.at);
  else
    warn_unscaled(step);
  if (noise_) noise_->check_step(iterations_.group(), step.at);
  if (accumulation_steps_ == 1) return;
  const Tensor count = accumulated_->read();
  const bool fresh = count.device().is_host() && count.item<std::int64_t>() == 0;
  slots_->accumulate(step.op, step.variables, fresh, step.at);
}

void Optimizer::warn_unscaled(const Step& step) {
  if (warned_of_scale_) return;
  const auto half = std::find_if(step.variables.begin(), step.variables.end(),
                                 [](const Variable& v) { return v.compute_dtype() == DType::f16; });
  if (half == step.variables.end() || warned_of_scale_.exchange(true)) return;
  logging::warning(
      message(step.op, "variable '", half->name(),
              "' is computed with in f16, in which small gradients vanish; ",
              scaled_ ? "the gradients of this step are not divided by the loss scale: "
                      : "scale the loss: make an optim::LossScaleOptimizer of this optimizer, and ",
              "call minimize or apply_gradients of ", scaled_ ? "the LossScaleOptimizer" : "that"));
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
  if (accumulated_) accumulated_->visit_state(visitor);
  if (rate_) rate_->visit_state(visitor);
  slots_->visit_state(visitor);
}

}  // namespace lockstep::optim
