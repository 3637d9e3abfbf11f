// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/schedule.h>

#include <algorithm>
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

}  // namespace lockstep::optim
