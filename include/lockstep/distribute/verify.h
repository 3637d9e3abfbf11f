// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/distribute/options.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/nest.h>

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Is my step right? verify() runs it on one, two and four replicas with the same rows, one replica at a
// time and all at once, and says from the numbers what is wrong with it.

namespace lockstep::testing {

// What goes wrong in steps, and what to do instead.
enum class Mistake {
  per_replica_divisor,         // loss divided by the replica's rows: nn::compute_average_loss
  regularizer_per_replica,     // penalty counted on each: nn::scale_regularization_loss
  clipped_before_aggregation,  // gradients clipped, then summed: the optimizer's Clip
  shared_state_raced,          // replicas change one object that they share: ReplicaLocal
  collective_missed,           // not every replica makes every collective
  averaged_twice,              // a mean over replicas of what all rows divided already
  metric_averaged,             // a mean of the replicas' metrics: sums over rows, see metrics/
  outside_randomness,          // random numbers that are not the strategy's: ops/random.h
  other                        // not as on one replica, for a reason not listed
};
LOCKSTEP_EXPORT std::string_view to_string(Mistake mistake);

struct Finding {
  std::vector<Mistake> candidates;  // one; several where they give the same numbers
  std::string text;                 // what was expected and observed, and what to do
};

struct VerifyReport {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  // what could not be compared, and why

  bool ok() const { return findings.empty(); }
  // Some finding has it among its candidates.
  LOCKSTEP_EXPORT bool names(Mistake mistake) const;
  // A line for each finding and note; for tests: EXPECT_TRUE(report.ok()) << report.to_string().
  LOCKSTEP_EXPORT std::string to_string() const;
};

struct VerifyOptions {
  // How far numbers may be apart that should be equal, relative to their size; 2e-2 suits 16 bits.
  double tolerance = 1e-3;
  // The model normalises by the rows of a replica, as BatchNorm does unless it is `synchronized`: then it
  // should give other numbers on one replica. What is expected is the weighted mean of what each replica's
  // rows give alone there; an update that is not linear in the gradient, as the first of SGD is, is left
  // to a note.
  bool local_statistics = false;
  // Of every wait for a replica that does not come.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  std::uint64_t seed = 0;
  // Makes the strategies from options for logical CPUs; unset: MirroredStrategy of them. For GPUs,
  // replace their devices.
  std::function<Strategy(const MirroredOptions& options)> make_strategy = {};
};

namespace detail {

// A program whose batch type is erased.
class LOCKSTEP_EXPORT AnyProgram {
 public:
  virtual ~AnyProgram();
  virtual std::vector<Variable> variables() = 0;
  // Undefined where the program's step returns nothing, or it has no metric.
  virtual Tensor step(const std::vector<Tensor>& leaves) = 0;
  virtual Tensor metric() = 0;
};

template <class Make, class T>
class ProgramOf final : public AnyProgram {
 public:
  ProgramOf(const Make& make, const T& prototype) : program_(make()), prototype_(prototype) {}
  std::vector<Variable> variables() override { return program_.variables(); }
  Tensor step(const std::vector<Tensor>& leaves) override {
    const T batch = with_leaves(prototype_, std::span<const Tensor>(leaves));
    if constexpr (std::is_void_v<decltype(program_.step(batch))>) {
      program_.step(batch);
      return {};
    } else {
      return program_.step(batch);
    }
  }
  Tensor metric() override {
    if constexpr (requires { program_.metric(); })
      return program_.metric();
    else
      return {};
  }

 private:
  std::invoke_result_t<const Make&> program_;
  T prototype_;
};

using MakeProgram = std::function<std::unique_ptr<AnyProgram>()>;
LOCKSTEP_EXPORT VerifyReport verify(const MakeProgram& make, const std::vector<Tensor>& leaves,
                                    const VerifyOptions& options, SourceLocation at);

}  // namespace detail

// A program is an object that holds a model and its optimizer and has
//
//   step(const T& batch)  one training step, called on every replica, and with the same rows again until
//                         it has updated something; returns nothing, or the replica's part of the loss,
//                         which is the sum of what the replicas return, or what they all return alike
//   variables()           what the step updates; of an optimizer like Adam, whose update hides the size of
//                         gradients, also slots (after build()): they tell more
//   metric()              optional: numbers over all rows seen, read after the step and outside of it
template <class P, class T>
concept Program = requires(P& program, const T& batch) {
  requires std::is_void_v<decltype(program.step(batch))> ||
               std::convertible_to<decltype(program.step(batch)), Tensor>;
  { program.variables() } -> std::convertible_to<std::vector<Variable>>;
};

// Runs programs that `make` makes, each in the scope of a strategy of its own, with the same weights as
// all of their random numbers come from that strategy, on the rows of `batch`, at least eight: all of
// them but what four replicas do not get equally, seven of them, and five, of which the last replica of
// four gets none. The step need not be right to be verified: what is wrong is in the report. It must
// run on one replica, though: what it throws there is thrown, as is what `make` throws.
//
// A step that draws random numbers from the strategy should give others on one replica, too. It is verified
// as with local_statistics, each part with the random numbers of its replica. Where Adam or the like makes
// large what is but rounding (the gradient of a bias before a batch norm), it is left out.
//
// Throws InvalidArgument for a batch of fewer rows, or a tolerance or deadline that is not positive. Not
// for steps that are traced.
template <class Make, class T>
  requires std::invocable<const Make&> && Program<std::invoke_result_t<const Make&>, T>
VerifyReport verify(const Make& make, const T& batch, const VerifyOptions& options = {},
                    SourceLocation at = SourceLocation::current()) {
  return detail::verify([&] { return std::make_unique<detail::ProgramOf<Make, T>>(make, batch); },
                        flatten(batch), options, at);
}
// The same of a program P that is made from nothing: verify<Training>(batch).
template <class P, class T>
  requires std::is_default_constructible_v<P> && Program<P, T>
VerifyReport verify(const T& batch, const VerifyOptions& options = {},
                    SourceLocation at = SourceLocation::current()) {
  return verify([] { return P(); }, batch, options, at);
}

}  // namespace lockstep::testing
