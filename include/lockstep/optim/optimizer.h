// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/optim/clip.h>
#include <lockstep/optim/ema.h>
#include <lockstep/optim/schedule.h>
#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/variable.h>

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

class GradientNoiseScale;
class LossScaleOptimizer;

struct ApplyOptions {
  // Sum the gradients over the replicas first. Without, each replica applies its own gradients to
  // its own components, which drift apart, and only its own vote skips its step: with gradient
  // accumulation a call that it voted out adds zeros, and counts.
  bool aggregate = true;
};

// What every optimizer has.
struct OptimizerOptions {
  LearningRate learning_rate;
  double weight_decay = 0;
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// A slot: a variable beside each variable that is updated.
struct OptimizerSlot {
  std::string name;
  double start = 0;  // the value that it starts at
  // Its shape, from the variable's; null: the same.
  Shape (*shape)(const Shape& variable) = nullptr;
  bool wide = false;    // f32 where the variable is of a 16-bit type
  bool summed = false;  // components are the replicas' parts of a sum (on_read)
};

// Updates variables from gradients, in place. Made in the strategy's scope, like the model, and
// used by all replicas at the same time: its state (step counts, learning rate, slots) is
// variables, of which each replica updates its own components.
//
// One step is: gradients of all replicas are summed, which is the commit point; then, unless a
// replica voted to skip the step, they are clipped and every variable is updated once, alike on all
// replicas. (With a LossScaleOptimizer they are unscaled before, and checked.) Nothing changes before the commit point, so a replica that fails leaves all weights as
// they were. One that fails in the update itself (out of memory) leaves the step's variables, their
// slots and the counts invalid on all replicas, see Variable. A variable that no replica used keeps
// its value and slots; where only some used it the others contribute zero. As gradients are summed,
// losses are to be divided by the global batch (nn::compute_average_loss).
//
// With gradient_accumulation_steps = n, n calls of minimize or apply_gradients, with the same variables,
// make one update by the mean of their gradients. The earlier ones add to the slot "accumulator", each
// replica to its own, and reduce nothing but their votes: a call that was voted to be skipped is as if
// it had not been, for the others and for n, and one that fails on a replica leaves all accumulators as
// they were. The n-th reduces the sums, once. steps_attempted() counts calls, iterations() updates.
// Where steps are traced, the number of a call is not known: each reduces, and its update is selected.
// Other variables than those of the calls before throw InvalidArgument until the update is made, and
// where steps are traced for good.
//
// Of a table of which a step reads a few rows (gather, nn::Embedding), the gradients are kept as rows
// by minimize, on CPUs, where GradientReduction says so: only they are sent to other replicas, and SGD
// without momentum and Adagrad, without weight decay and Ema, touch no others. Other optimizers move
// all rows, as TensorFlow's do.
//
// Weight decay is decoupled (arXiv:1711.05101) unless an optimizer says otherwise: weights shrink by
// learning_rate * weight_decay of themselves before they are updated.
class LOCKSTEP_EXPORT Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step down the gradient of `loss`, recorded by `tape` (a vector counts as the sum of its
  // elements). Gradients are summed over the replicas while the tape still computes others. Called
  // by every replica with the same variables, in the step function. The tape is used up unless it
  // is persistent, in which case the update copies the weights that its records hold.
  //
  // Throws FailedPrecondition outside the step function, in a function given to recompute, or for an
  // optimizer or variable of another scope, InvalidArgument when no variable has a gradient on any replica or none was given.
  void minimize(const Tensor& loss, std::span<const Variable> variables, GradientTape& tape,
                SourceLocation at = SourceLocation::current());
  void minimize(const Tensor& loss, std::initializer_list<Variable> variables, GradientTape& tape,
                SourceLocation at = SourceLocation::current()) {
    minimize(loss, std::span(variables.begin(), variables.size()), tape, at);
  }

  // The long form: one step with this replica's gradients, in the variables' order, undefined where
  // there is none. As minimize; throws InvalidArgument also when counts, shapes or dtypes differ.
  void apply_gradients(std::span<const Tensor> gradients, std::span<const Variable> variables,
                       ApplyOptions options = {}, SourceLocation at = SourceLocation::current());
  void apply_gradients(std::initializer_list<Tensor> gradients,
                       std::initializer_list<Variable> variables, ApplyOptions options = {},
                       SourceLocation at = SourceLocation::current()) {
    apply_gradients(std::span(gradients.begin(), gradients.size()),
                    std::span(variables.begin(), variables.size()), options, at);
  }

  // Variables whose name holds a match of one of these regular expressions (ECMAScript's), "bias" for
  // example, do not decay. Throws FailedPrecondition once there are slots, InvalidArgument for what
  // is no regular expression.
  void exclude_from_weight_decay(const std::vector<std::string>& names,
                                 SourceLocation at = SourceLocation::current());

  // Replaces the variables by their moving averages, every component by its own; at the end of
  // training with Ema. In a step function it concerns the calling replica's components; where the
  // step is traced, a variable whose average has not begun is left as it is. Throws InvalidArgument for
  // a variable that has no average yet, and then replaces none.
  void finalize_variable_values(std::span<const Variable> variables,
                                SourceLocation at = SourceLocation::current());

  // From now on each update also tells `noise`, which is borrowed and was made in the same scope (else
  // the next step throws FailedPrecondition), what it learns of the gradients' noise. To be called
  // between updates.
  void measure(GradientNoiseScale& noise) { noise_ = &noise; }

  // Makes the slots of these variables, which otherwise appear with their first update; for
  // restoring.
  void build(std::span<const Variable> variables);
  // A slot of a variable, "velocity" for example. Throws InvalidArgument when there is none.
  Variable slot(const Variable& variable, std::string_view name,
                SourceLocation at = SourceLocation::current()) const;

  // i64 scalars: updates applied, and steps including those that were skipped.
  const Variable& iterations() const { return iterations_; }
  const Variable& steps_attempted() const { return steps_attempted_; }
  // The rate of the next update, a scalar.
  Tensor learning_rate() const;
  // Replaces a rate that is a number; outside replicas on all of them. Throws FailedPrecondition
  // when a schedule decides.
  void set_learning_rate(double rate, SourceLocation at = SourceLocation::current());

  // Counts, rate and the slots there are.
  void visit_state(StateVisitor& visitor);

 protected:
  // What one update of one variable is made of. The scalars are the same for all variables of a
  // step.
  struct Update {
    const Variable& variable;
    std::span<const Variable> slots;  // in the order in which they were named
    const Tensor& gradient;
    const Tensor& gradient_scale;  // to multiply the gradient with; undefined: 1
    const Tensor& learning_rate;
    const Tensor& step;   // i64: 1 at the first update
    double weight_decay;  // 0 for a variable that does not decay
    // Defined only for rules that updates_by_rows: the gradient is of these rows, see UpdateStep.
    const Tensor& rows;
  };
  // Throws InvalidArgument for a negative rate or weight decay, more than one kind of clipping, a
  // momentum of Ema out of range, or gradient_accumulation_steps below 1.
  Optimizer(const OptimizerOptions& options, std::vector<OptimizerSlot> slots, SourceLocation at);
  // Changes the variable's and slots' components of the calling replica. Thread-safe.
  virtual void update(const Update& update) const = 0;
  // Whether update takes gradients of a few rows; where not they are made dense.
  virtual bool updates_by_rows() const { return false; }

 private:
  friend class LossScaleOptimizer;
  class Slots;
  // One call of minimize or apply_gradients.
  struct Step {
    const char* op;
    ReplicaContext& replica;
    std::span<const Variable> variables;
    LossScaleOptimizer*
        scaling;  // gradients are those of a loss that it scaled; null: they are not
    SourceLocation at;
    bool aggregate = true;
    // Where it is not known whether this call updates: whether it does not, and the local sums.
    Tensor waits = {};
    std::vector<Tensor> totals = {};
    Tensor own_square = {};  // of the norm of this replica's gradients, where noise is measured
  };
  void minimize_scaled(const Tensor& loss, std::span<const Variable> variables, GradientTape& tape,
                       LossScaleOptimizer* scaling, SourceLocation at);
  void apply_scaled(std::span<const Tensor> gradients, std::span<const Variable> variables,
                    ApplyOptions options, LossScaleOptimizer* scaling, SourceLocation at);
  ReplicaContext& replica(const char* op, std::span<const Variable> variables,
                          SourceLocation at) const;
  void check_before(const Step& step);
  // Warns once of variables that are computed with in f16.
  void warn_unscaled(const Step& step);
  static ReducedGradients committed(GradientReduction& reduction);
  // `commit` is the commit point: what it returns is the same on all replicas.
  void run(const Step& step, const std::function<ReducedGradients()>& commit);
  using SlotLists = std::vector<std::span<const Variable>>;
  void apply(const Step& step, const SlotLists& slots, ReducedGradients& reduced,
             const Tensor& rate, const Tensor& number);
  Tensor gradient_scale(const Step& step) const;
  void judge(const Step& step, const SlotLists& slots, ReducedGradients& reduced,
             const Tensor& scale, const Tensor& norm);
  struct Common;
  void update_variable(const Step& step, const Variable& variable, std::span<const Variable> slots,
                       Tensor& gradient, const Tensor& rows, const Common& common);
  void update_average(const Variable& variable, std::span<const Variable> average,
                      const Tensor& number) const;
  // The update broke off with the exception that is being handled.
  // Gradient accumulation (accumulate.cc): which of the calls that make one update this is.
  enum class Call { updates, adds, unknown };
  Call kind_of_call() const;
  const Variable& accumulator(std::span<const Variable> slots) const;
  void add(const Step& step, std::span<const Tensor> gradients);
  // Throws what stopped another replica.
  static void agree(const Step& step);
  // The gradients of a call that is not aggregated: zeros, if the replica voted to leave it out.
  static std::vector<Tensor> without_voted(const Step& step, std::span<const Tensor> gradients);
  // Hands `reduction` the gradient, with what was accumulated before.
  void ready(Step& step, const SlotLists& slots, GradientReduction& reduction, std::size_t i,
             const Tensor& gradient) const;
  void ready(Step& step, const SlotLists& slots, GradientReduction& reduction, std::size_t i,
             const IndexedSlices& gradient) const;
  void add_square(Step& step, const Tensor& gradient) const;
  void settle_accumulators(const Step& step, const SlotLists& slots, const Tensor& voted);
  void invalidate(const Step& step, const SlotLists& slots) const;
  void check_used(const char* op, std::span<const Variable> variables,
                  std::span<const Tensor> gradients, SourceLocation at);

  const double weight_decay_;
  const Clip clip_;
  const Ema ema_;
  const std::int64_t accumulation_steps_;
  const std::optional<Schedule> schedule_;
  std::optional<Variable> rate_;  // when there is no schedule
  Variable iterations_;
  Variable steps_attempted_;
  std::optional<Variable> accumulated_;  // calls since the last update
  const std::unique_ptr<Slots> slots_;
  std::atomic<bool> warned_{false};           // of a variable without gradient
  std::atomic<bool> warned_of_scale_{false};  // of f16 without a loss scale
  bool scaled_ = false;                       // by a LossScaleOptimizer
  GradientNoiseScale* noise_ = nullptr;
};

}  // namespace lockstep::optim
