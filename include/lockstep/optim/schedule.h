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
// initial * decay_rate ^ (step / decay_steps).
LOCKSTEP_EXPORT Schedule exponential_decay(double initial,
                                           const ExponentialDecayOptions& options = {},
                                           SourceLocation at = SourceLocation::current());

struct CosineDecayOptions {
  std::int64_t decay_steps = 1000;  // after the warm-up
  double alpha = 0;                 // what is left in the end, as a fraction of `initial`
  std::int64_t warmup_steps = 0;    // linearly from 0 to `initial` before
};
// initial * (alpha + (1 - alpha) (1 + cos(pi step / decay_steps)) / 2), constant afterwards
// (Loshchilov and Hutter, arXiv:1608.03983).
LOCKSTEP_EXPORT Schedule cosine_decay(double initial, const CosineDecayOptions& options = {},
                                      SourceLocation at = SourceLocation::current());

// values[i] while step <= boundaries[i], the last value afterwards, as in TensorFlow. Throws
// InvalidArgument unless there is one value more than boundaries, which ascend.
LOCKSTEP_EXPORT Schedule piecewise_constant(std::vector<std::int64_t> boundaries,
                                            std::vector<double> values,
                                            SourceLocation at = SourceLocation::current());

}  // namespace lockstep::optim
