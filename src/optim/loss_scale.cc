// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/update.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/replica/context.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include <array>
#include <cmath>
#include <limits>

#include "optim/clip_scale.h"

namespace lockstep::optim {
namespace {

constexpr const char* kClass = "LossScaleOptimizer";
constexpr double kInitialScale = 1 << 15;
constexpr std::int64_t kGrowthSteps = 2000;
constexpr double kSmallest = std::numeric_limits<float>::min();  // its inverse is finite in f32
constexpr double kLargestThatGrows = 0x1p127;  // excluded; f32 ends below twice that

LossScaleOptions checked(const LossScaleOptions& options, SourceLocation at) {
  const double scale = options.initial_scale.value_or(kInitialScale);
  require(options.dynamic || options.initial_scale, at, kClass,
          "a fixed scale needs an initial_scale");
  require(options.dynamic || !options.growth_steps, at, kClass,
          "a fixed scale does not grow; leave growth_steps unset");
  require(scale >= kSmallest && std::isfinite(static_cast<float>(scale)), at, kClass,
          "expected a scale of 2^-126 or more that f32 holds, got ", scale);
  require(options.growth_steps.value_or(1) >= 1, at, kClass,
          "expected growth_steps of 1 or more, got ", options.growth_steps.value_or(1));
  require(!options.dynamic || (options.min_scale >= kSmallest && options.min_scale <= scale), at,
          kClass, "expected a min_scale of 2^-126 or more and at most the scale ", scale, ", got ",
          options.min_scale);
  require(options.max_consecutive_skips >= 0, at, kClass,
          "expected max_consecutive_skips of 0 or more, got ", options.max_consecutive_skips);
  LossScaleOptions complete = options;
  complete.initial_scale = scale;
  complete.growth_steps = options.growth_steps.value_or(kGrowthSteps);
  return complete;
}

Variable state(const Tensor& start, const char* name, SourceLocation at) {
  return Variable(start, {.name = name, .trainable = false}, at);
}

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(Optimizer& inner, const LossScaleOptions& options,
                                       SourceLocation at)
    : inner_(inner),
      options_(checked(options, at)),
      scale_(state(Tensor(static_cast<float>(*options_.initial_scale)), "loss_scale", at)),
      good_steps_(state(Tensor(std::int64_t{0}), "good_steps", at)),
      skipped_steps_(state(Tensor(std::int64_t{0}), "skipped_steps", at)),
      consecutive_skips_(state(Tensor(std::int64_t{0}), "consecutive_skips", at)) {
  if (scale_.group() != inner.iterations().group())
    throw FailedPrecondition(
        message(kClass, "the optimizer was made in another scope; make both in the strategy's"),
        at);
  require(!inner.scaled_, at, kClass, "the optimizer has a loss scale already");
  inner.scaled_ = true;
}

LossScaleOptimizer::~LossScaleOptimizer() { inner_.scaled_ = false; }

void LossScaleOptimizer::minimize(const Tensor& loss, std::span<const Variable> variables,
                                  GradientTape& tape, SourceLocation at) {
  inner_.minimize_scaled(loss, variables, tape, this, at);
}

void LossScaleOptimizer::apply_gradients(std::span<const Tensor> gradients,
                                         std::span<const Variable> variables, ApplyOptions options,
                                         SourceLocation at) {
  inner_.apply_scaled(gradients, variables, options, this, at);
}

Tensor LossScaleOptimizer::scale_loss(const Tensor& loss, SourceLocation at) const {
  require(loss.defined() && is_floating(loss.dtype()), at, "LossScaleOptimizer::scale_loss",
          "expected a floating loss, got ", loss);
  return mul(Operand(loss, at), Operand(cast(scale_.read(at), loss.dtype(), at), at));
}

void LossScaleOptimizer::check_in_step(SourceLocation at) const {
  if (consecutive_skips_.read(at).device().is_host()) check_progress(at);
}

Tensor LossScaleOptimizer::gradient_of_scaled(const Tensor& loss) const {
  if (!loss.defined() || !is_floating(loss.dtype())) return {};  // refused by the tape
  const RecorderScope suspended(nullptr);
  return ones_like(loss) * cast(scale_.read(), loss.dtype());
}

Tensor LossScaleOptimizer::inverse_scale() const { return 1.0 / cast(scale_.read(), DType::f64); }

Tensor LossScaleOptimizer::overflows(std::span<const Tensor> gradients, const Tensor& scale,
                                     const Tensor& norm) const {
  if (norm.defined()) return logical_not(is_finite(norm));
  if ((options_.dynamic ? options_.min_scale : *options_.initial_scale) < 1)  // may enlarge
    return logical_not(
        less_equal(norm_of(gradients, scale, {}), double{std::numeric_limits<float>::max()}));
  std::vector<Tensor> defined;
  for (const Tensor& gradient : gradients)
    if (gradient.defined()) defined.push_back(gradient);
  return logical_not(is_finite_all(defined));
}

Tensor LossScaleOptimizer::verdict(const ReducedGradients& reduced, const Tensor& scale,
                                   const Tensor& norm, bool aggregated, const Tensor& waits) {
  Tensor overflow = overflows(reduced.gradients, scale, norm);
  if (!aggregated) {  // gradients are the replicas' own, the scale is everybody's
    ReplicaContext& replica = *get_replica_context();
    overflow = greater(replica.all_reduce(ReduceOp::sum, cast(overflow, DType::i32)), 0);
  }
  // A step that all skip anyhow changes nothing, so what is kept of it stays at its scale.
  Tensor ignored = aggregated ? reduced.skip : waits;
  if (ignored.defined())
    overflow = logical_and(overflow, logical_not(ignored));
  else
    ignored = Tensor(false);
  adapt(overflow, ignored);
  return logical_or(overflow, reduced.skip);
}

void LossScaleOptimizer::adapt(const Tensor& overflow, const Tensor& ignored) {
  static telemetry::Counter& skipped = telemetry::counter("lockstep_overflowed_steps_total");
  if (overflow.device().is_host() && overflow.item<bool>() &&
      get_replica_context()->local_index() == 0)
    skipped.add();
  const auto update = [](const Variable& variable, const auto& next) {
    update_values(std::array{variable},
                  [&](std::array<Tensor, 1>& value) { value[0] = next(value[0]); });
  };
  update(skipped_steps_, [&](const Tensor& n) { return n + cast(overflow, DType::i64); });
  update(consecutive_skips_,
         [&](const Tensor& n) { return select(overflow, n + 1, select(ignored, n, 0)); });
  if (!options_.dynamic) return;
  const Tensor good = good_steps_.read() + 1;
  const Tensor grows = greater_equal(good, static_cast<double>(*options_.growth_steps));
  update(scale_, [&](const Tensor& scale) {
    const Tensor smaller = maximum(scale * 0.5, options_.min_scale);
    const Tensor grown =
        select(logical_and(grows, less(scale, kLargestThatGrows)), scale * 2.0, scale);
    return select(overflow, smaller, select(ignored, scale, grown));
  });
  update(good_steps_, [&](const Tensor& before) {
    return select(overflow, 0, select(ignored, before, select(grows, 0, good)));
  });
}

void LossScaleOptimizer::check_progress(SourceLocation at) const {
  if (options_.max_consecutive_skips == 0) return;
  const std::int64_t skips = consecutive_skips_.read(at).item<std::int64_t>();
  if (skips < options_.max_consecutive_skips) return;
  throw FailedPrecondition(
      message(
          kClass, "the gradients of the last ", skips,
          " steps were not finite, and so none was applied; the loss scale is ",
          scale_.read(at).item<float>(),
          ". Look for inf or NaN in the loss and the data; or allow a smaller min_scale or more "
          "max_consecutive_skips"),
      at);
}

void LossScaleOptimizer::visit_state(StateVisitor& visitor) {
  inner_.visit_state(visitor);
  for (Variable* variable : {&scale_, &good_steps_, &skipped_steps_, &consecutive_skips_})
    variable->visit_state(visitor);
}

}  // namespace lockstep::optim
