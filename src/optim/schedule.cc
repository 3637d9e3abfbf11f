// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/schedule.h>
#include <lockstep/replica/replica_group.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::optim {

Schedule exponential_decay(double initial, const ExponentialDecayOptions& options,
                           SourceLocation at) {
  require(options.decay_steps > 0, at, "exponential_decay",
          "expected decay_steps of 1 or more, got ", options.decay_steps);
  return [initial, options](const Tensor& step) {
    Tensor periods = cast(step, DType::f64) / static_cast<double>(options.decay_steps);
    if (options.staircase) periods = floor(periods);
    return initial * pow(options.decay_rate, periods);
  };
}

Schedule cosine_decay(double initial, const CosineDecayOptions& options, SourceLocation at) {
  require(options.decay_steps > 0 && options.warmup_steps >= 0, at, "cosine_decay",
          "expected decay_steps of 1 or more and warmup_steps of 0 or more, got ",
          options.decay_steps, " and ", options.warmup_steps);
  return [initial, options](const Tensor& step) {
    const auto warmup_steps = static_cast<double>(options.warmup_steps);
    const Tensor at_step = cast(step, DType::f64);
    const Tensor done =
        clamp((at_step - warmup_steps) / static_cast<double>(options.decay_steps), 0.0, 1.0);
    Tensor decayed = initial * (options.alpha +
                                (1 - options.alpha) * (0.5 * (1.0 + cos(std::numbers::pi * done))));
    if (options.warmup_steps == 0) return decayed;
    return select(less(at_step, warmup_steps), initial / warmup_steps * at_step, decayed);
  };
}

Schedule piecewise_constant(std::vector<std::int64_t> boundaries, std::vector<double> values,
                            SourceLocation at) {
  require(values.size() == boundaries.size() + 1 &&
              std::is_sorted(boundaries.begin(), boundaries.end()),
          at, "piecewise_constant", "expected boundaries that ascend and one value more, got ",
          boundaries.size(), " boundaries and ", values.size(), " values");
  return [boundaries = std::move(boundaries), values = std::move(values)](const Tensor& step) {
    Tensor rate(values.back());
    for (std::size_t i = boundaries.size(); i-- > 0;)
      rate = select(less_equal(step, boundaries[i]), values[i], rate);
    return rate;
  };
}

Schedule polynomial_decay(double initial, const PolynomialDecayOptions& options,
                          SourceLocation at) {
  require(options.decay_steps > 0 && options.power >= 0, at, "polynomial_decay",
          "expected decay_steps of 1 or more and a power of 0 or more, got ", options.decay_steps,
          " and ", options.power);
  return [initial, options](const Tensor& step) {
    const auto decay_steps = static_cast<double>(options.decay_steps);
    const Tensor periods = cast(step, DType::f64) / decay_steps;
    const Tensor done =
        options.cycle ? periods / maximum(ceil(periods), 1.0) : minimum(periods, 1.0);
    return (initial - options.end_learning_rate) * pow(1.0 - done, options.power) +
           options.end_learning_rate;
  };
}

Schedule inverse_time_decay(double initial, const InverseTimeDecayOptions& options,
                            SourceLocation at) {
  require(options.decay_steps > 0 && options.decay_rate >= 0, at, "inverse_time_decay",
          "expected decay_steps of 1 or more and a decay_rate of 0 or more, got ",
          options.decay_steps, " and ", options.decay_rate);
  return [initial, options](const Tensor& step) {
    Tensor periods = cast(step, DType::f64) / static_cast<double>(options.decay_steps);
    if (options.staircase) periods = floor(periods);
    return initial / (1.0 + options.decay_rate * periods);
  };
}

Schedule cosine_decay_restarts(double initial, const CosineDecayRestartsOptions& options,
                               SourceLocation at) {
  require(options.first_decay_steps > 0 && options.t_mul >= 1 && options.m_mul >= 0, at,
          "cosine_decay_restarts",
          "expected first_decay_steps and t_mul of 1 or more and m_mul of 0 or more, got ",
          options.first_decay_steps, ", ", options.t_mul, " and ", options.m_mul);
  return [initial, options](const Tensor& step) {
    const Tensor time = cast(step, DType::f64) / static_cast<double>(options.first_decay_steps);
    Tensor period, done;
    if (options.t_mul == 1) {
      period = floor(time);
      done = time - period;
    } else {
      // Period i begins at (t_mul^i - 1) / (t_mul - 1); the logarithm is right but for rounding.
      const double growth = options.t_mul - 1;
      const auto fraction = [&](const Tensor& i) {
        const Tensor length = pow(options.t_mul, i);
        return (time - (length - 1.0) / growth) / length;
      };
      period = floor(log(1.0 + time * growth) / std::log(options.t_mul));
      period = select(greater_equal(fraction(period), 1.0), period + 1.0, period);
      done = fraction(period);
    }
    const Tensor cosine = 0.5 * pow(options.m_mul, period) * (1.0 + cos(std::numbers::pi * done));
    return initial * (options.alpha + (1 - options.alpha) * cosine);
  };
}

namespace {

Tensor rate_at(const LearningRate& rate, const Tensor& step) {
  return rate.schedule() ? cast((*rate.schedule())(step), DType::f64) : Tensor(*rate.number());
}

}  // namespace

Schedule linear_warmup(const LearningRate& rate, const LinearWarmupOptions& options,
                       SourceLocation at) {
  require(options.warmup_steps > 0, at, "linear_warmup", "expected warmup_steps of 1 or more, got ",
          options.warmup_steps);
  return [rate, options](const Tensor& step) {
    const auto steps = static_cast<double>(options.warmup_steps);
    const Tensor target = rate_at(rate, maximum(step - options.warmup_steps, 0));
    const Tensor done = cast(step, DType::f64) / steps;
    return select(less(step, options.warmup_steps),
                  options.initial + (target - options.initial) * done, target);
  };
}

Schedule one_cycle(double max_rate, const OneCycleOptions& options, SourceLocation at) {
  const double peak = options.warmup_fraction * static_cast<double>(options.total_steps) - 1;
  const double last = static_cast<double>(options.total_steps) - 1;
  require(options.warmup_fraction < 1 && peak > 0, at, "one_cycle",
          "expected a warmup_fraction below 1 and a warm-up of more than one step, got ",
          options.warmup_fraction, " of ", options.total_steps, " steps");
  require(options.div_factor > 0 && options.final_div_factor > 0, at, "one_cycle",
          "expected factors above 0, got ", options.div_factor, " and ", options.final_div_factor);
  return [=](const Tensor& step) {
    const double first = max_rate / options.div_factor;
    const auto between = [&](double from, double to, const Tensor& done) {
      if (options.anneal == Anneal::linear) return from + (to - from) * done;
      return to + (from - to) * (0.5 * (1.0 + cos(std::numbers::pi * done)));
    };
    const Tensor now = cast(step, DType::f64);
    const Tensor down = clamp((now - peak) / (last - peak), 0.0, 1.0);
    return select(less_equal(now, peak), between(first, max_rate, now / peak),
                  between(max_rate, first / options.final_div_factor, down));
  };
}

LearningRate scale_by_replicas(const LearningRate& rate, ReplicaScaling scaling) {
  const auto& group = current_replica_group();
  const double replicas = group ? group->num_replicas_in_sync() : 1;
  const double factor = scaling == ReplicaScaling::linear ? replicas : std::sqrt(replicas);
  if (rate.number()) return *rate.number() * factor;
  return Schedule([rate, factor](const Tensor& step) { return rate_at(rate, step) * factor; });
}

}  // namespace lockstep::optim
