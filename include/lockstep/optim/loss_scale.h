// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/optimizer.h>

#include <cstdint>
#include <optional>

namespace lockstep::optim {

struct LossScaleOptions {
  bool dynamic = true;
  std::optional<double> initial_scale = {};       // unset: 2^15; needed where the scale is fixed
  std::optional<std::int64_t> growth_steps = {};  // unset: 2000; not for a fixed scale
  double min_scale = 1;  // no overflow makes the scale smaller than this, which is 2^-126 or more
  // So many steps in a row that overflowed are an error; 0: never one.
  std::int64_t max_consecutive_skips = 50;
};

// Loss scaling for f16, of which small gradients vanish: the loss is multiplied by a scale, and so are
// the gradients; they are summed over the replicas as they are, and divided by the scale before they are
// clipped and applied by another optimizer.
//
//   optim::Adam adam({.learning_rate = 1e-3});
//   optim::LossScaleOptimizer optimizer(adam);
//   ... optimizer.minimize(loss, model.trainable_variables(), tape);
//
// A step whose sums are not finite, or would not be when divided by a scale below 1, is skipped on all
// replicas: weights, slots and iterations() stay, steps_attempted() and skipped_steps() count it. A
// dynamic scale is doubled, if that is finite, after growth_steps finite steps in a row, and halved by
// each overflow, by TensorFlow's rules. Steps that a vote skipped change neither. All state is
// variables, in updates by select where the step does not know them, so it can be traced and waits for
// no device.
//
// Training that only skips is an error, FailedPrecondition: after max_consecutive_skips overflows in a
// row the next step throws it on every replica before it changes anything, where the count is known on
// the host; on accelerators, where a step does not look at it, check_progress() does between runs.
//
// The optimizer is borrowed, and must outlive this; its other functions (slot, build,
// finalize_variable_values) are called on itself. Its own minimize and apply_gradients know nothing of the
// scale: they are for losses that are not scaled, and warn once where layers compute in f16. Made in the
// strategy's scope.
class LOCKSTEP_EXPORT LossScaleOptimizer {
 public:
  // Throws InvalidArgument for a scale that is not a normal positive f32, growth_steps below 1, a
  // min_scale that is not or is more than the scale, a negative count, a fixed scale that is not
  // given or is to grow; and for an optimizer that has a loss scale already.
  explicit LossScaleOptimizer(Optimizer& inner, const LossScaleOptions& options = {},
                              SourceLocation at = SourceLocation::current());
  ~LossScaleOptimizer();
  LossScaleOptimizer(const LossScaleOptimizer&) = delete;
  LossScaleOptimizer& operator=(const LossScaleOptimizer&) = delete;

  // As Optimizer's; the loss is not scaled yet.
  void minimize(const Tensor& loss, std::span<const Variable> variables, GradientTape& tape,
                SourceLocation at = SourceLocation::current());
  void minimize(const Tensor& loss, std::initializer_list<Variable> variables, GradientTape& tape,
                SourceLocation at = SourceLocation::current()) {
    minimize(loss, std::span(variables.begin(), variables.size()), tape, at);
  }
  // The long form: the gradients are those of scale_loss(loss), and divided by the scale here. Without
  // aggregation the replicas still agree on the overflow, by a collective, and the scale follows it
  // alone: a vote, which skips the step of its own replica, is as no vote to it.
  void apply_gradients(std::span<const Tensor> gradients, std::span<const Variable> variables,
                       ApplyOptions options = {}, SourceLocation at = SourceLocation::current());
  void apply_gradients(std::initializer_list<Tensor> gradients,
                       std::initializer_list<Variable> variables, ApplyOptions options = {},
                       SourceLocation at = SourceLocation::current()) {
    apply_gradients(std::span(gradients.begin(), gradients.size()),
                    std::span(variables.begin(), variables.size()), options, at);
  }
  // loss * scale, in the dtype of the loss: keep it f32, f16 ends at 65504. Its gradients are for
  // apply_gradients above.
  Tensor scale_loss(const Tensor& loss, SourceLocation at = SourceLocation::current()) const;

  Optimizer& inner() const { return inner_; }
  const Variable& iterations() const { return inner_.iterations(); }
  const Variable& steps_attempted() const { return inner_.steps_attempted(); }
  // The scale, an f32 scalar, and three counts, i64 scalars: finite steps since the scale changed last
  // (TensorFlow's dynamic_counter), overflowed steps in all, and in a row up to now.
  const Variable& scale() const { return scale_; }
  const Variable& good_steps() const { return good_steps_; }
  const Variable& skipped_steps() const { return skipped_steps_; }
  const Variable& consecutive_skips() const { return consecutive_skips_; }
  // Throws the error described above. Outside the step function it waits for the device.
  void check_progress(SourceLocation at = SourceLocation::current()) const;

  // Those of the inner optimizer and the four above.
  void visit_state(StateVisitor& visitor);

 private:
  friend class Optimizer;
  // check_progress, if the count is known without waiting.
  void check_in_step(SourceLocation at) const;
  // What a backward pass from `loss` starts with, so that it gives the gradients of the scaled loss.
  Tensor gradient_of_scaled(const Tensor& loss) const;
  // What scaled gradients are to be multiplied with, an f64 scalar.
  Tensor inverse_scale() const;
  // Whether all replicas are to skip the step: a vote, or an overflow, to which the scale adapts. `norm`,
  // of all gradients, tells of the overflow where it is defined. `scale` is what they are to be
  // multiplied with. A call that `waits` (undefined: it does not), because it only accumulates,
  // overflows later.
  Tensor verdict(const ReducedGradients& reduced, const Tensor& scale, const Tensor& norm,
                 bool aggregated, const Tensor& waits);
  // Of the gradients of the calling replica.
  Tensor overflows(std::span<const Tensor> gradients, const Tensor& scale,
                   const Tensor& norm) const;
  // The scale and the counts follow a step, which changes nothing where it is `ignored`.
  void adapt(const Tensor& overflow, const Tensor& ignored);

  Optimizer& inner_;
  const LossScaleOptions options_;
  Variable scale_, good_steps_, skipped_steps_, consecutive_skips_;
};

}  // namespace lockstep::optim
