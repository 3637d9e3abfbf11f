// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::optim {

// A learning rate over time: given the number of updates applied so far, an i64 scalar, the rate of
// the next one, a floating scalar. Called by every replica, at the same time.
using Schedule = std::function<Tensor(const Tensor& step)>;

// A number or a schedule.
class LearningRate {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  LearningRate(T rate) : rate_(static_cast<double>(rate)) {}  // NOLINT: {.learning_rate = 0.1}
  template <std::convertible_to<Schedule> F>
    requires(!std::is_arithmetic_v<F>)
  LearningRate(F schedule) : rate_(Schedule(std::move(schedule))) {}  // NOLINT: likewise

  const double* number() const { return std::get_if<double>(&rate_); }
  const Schedule* schedule() const { return std::get_if<Schedule>(&rate_); }

 private:
  std::variant<double, Schedule> rate_;
};

// The schedules compute in f64 on the device of the step count. All throw InvalidArgument for a
// number of steps below 1.

struct ExponentialDecayOptions {
  double decay_rate = 0.96;
  std::int64_t decay_steps = 1000;
  bool staircase = false;  // whole multiples of decay_steps only
};
// initial * decay_rate ^ (step / decay_steps), as Keras's ExponentialDecay.
LOCKSTEP_EXPORT Schedule exponential_decay(double initial,
                                           const ExponentialDecayOptions& options = {},
                                           SourceLocation at = SourceLocation::current());

struct CosineDecayOptions {
  std::int64_t decay_steps = 1000;  // after the warm-up
  double alpha = 0;                 // what is left in the end, as a fraction of `initial`
  std::int64_t warmup_steps = 0;    // linearly from 0 to `initial` before
};
// initial * (alpha + (1 - alpha) (1 + cos(pi step / decay_steps)) / 2), constant afterwards
// (Loshchilov and Hutter, arXiv:1608.03983), as Keras's CosineDecay.
LOCKSTEP_EXPORT Schedule cosine_decay(double initial, const CosineDecayOptions& options = {},
                                      SourceLocation at = SourceLocation::current());

// values[i] while step <= boundaries[i], the last value afterwards, as in TensorFlow. Throws
// InvalidArgument unless there is one value more than boundaries, which ascend.
LOCKSTEP_EXPORT Schedule piecewise_constant(std::vector<std::int64_t> boundaries,
                                            std::vector<double> values,
                                            SourceLocation at = SourceLocation::current());

struct PolynomialDecayOptions {
  std::int64_t decay_steps = 1000;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;  // decay_steps becomes the next multiple of itself that step does not exceed
};
// (initial - end) * (1 - step / decay_steps) ^ power + end, `end` afterwards, as Keras's
// PolynomialDecay.
LOCKSTEP_EXPORT Schedule polynomial_decay(double initial,
                                          const PolynomialDecayOptions& options = {},
                                          SourceLocation at = SourceLocation::current());

struct InverseTimeDecayOptions {
  double decay_rate = 0.5;
  std::int64_t decay_steps = 1000;
  bool staircase = false;  // whole multiples of decay_steps only
};
// initial / (1 + decay_rate * step / decay_steps), as Keras's InverseTimeDecay.
LOCKSTEP_EXPORT Schedule inverse_time_decay(double initial,
                                            const InverseTimeDecayOptions& options = {},
                                            SourceLocation at = SourceLocation::current());

struct CosineDecayRestartsOptions {
  std::int64_t first_decay_steps = 1000;
  double t_mul = 2;  // each period is this many times as long as the one before; 1 or more
  double m_mul = 1;  // and starts at this fraction of its start
  double alpha = 0;  // the least, as a fraction of `initial`
};
// Half a cosine that starts again (SGDR; Loshchilov and Hutter, arXiv:1608.03983), as Keras's
// CosineDecayRestarts: initial * (alpha + (1 - alpha) m_mul^i (1 + cos(pi x)) / 2) at the fraction x
// of period i, counted from 0.
LOCKSTEP_EXPORT Schedule cosine_decay_restarts(double initial,
                                               const CosineDecayRestartsOptions& options = {},
                                               SourceLocation at = SourceLocation::current());

struct LinearWarmupOptions {
  std::int64_t warmup_steps = 1000;
  double initial = 0;
};
// From `initial` linearly to what `rate` is at its step 0, then `rate` from there on: its step
// counts from the end of the warm-up.
LOCKSTEP_EXPORT Schedule linear_warmup(const LearningRate& rate,
                                       const LinearWarmupOptions& options = {},
                                       SourceLocation at = SourceLocation::current());

enum class Anneal { cosine, linear };
struct OneCycleOptions {
  std::int64_t total_steps = 1000;
  double warmup_fraction = 0.3;  // of total_steps, in (0, 1)
  Anneal anneal = Anneal::cosine;
  double div_factor = 25;         // it starts at max_rate / div_factor
  double final_div_factor = 1e4;  // and ends at a final_div_factor-th of that
};
// Up to max_rate at step warmup_fraction * total_steps - 1 and down until step total_steps - 1, where
// it stays (Smith and Topin, arXiv:1708.07120), as PyTorch's OneCycleLR with two phases.
LOCKSTEP_EXPORT Schedule one_cycle(double max_rate, const OneCycleOptions& options = {},
                                   SourceLocation at = SourceLocation::current());

// How a rate grows with the number of replicas, whose global batch does: in proportion (Goyal et al.,
// arXiv:1706.02677) or with its square root (Krizhevsky, arXiv:1404.5997).
enum class ReplicaScaling { linear, square_root };
// A rate that was found for one replica, for all that are in sync: called in the strategy's scope.
// Outside a scope it is the rate itself.
LOCKSTEP_EXPORT LearningRate scale_by_replicas(const LearningRate& rate,
                                               ReplicaScaling scaling = ReplicaScaling::linear);

}  // namespace lockstep::optim
