// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/optim/adafactor.h>

#include <array>

namespace lockstep::optim {
namespace {

AdafactorOptions checked(const AdafactorOptions& options, SourceLocation at) {
  require(options.beta_2_decay <= 0, at, "Adafactor", "expected beta_2_decay of 0 or less, got ",
          options.beta_2_decay);
  require(options.clip_threshold > 0, at, "Adafactor", "expected clip_threshold above 0, got ",
          options.clip_threshold);
  require(options.epsilon_1 >= 0 && options.epsilon_2 >= 0, at, "Adafactor",
          "expected epsilons of 0 or more, got ", options.epsilon_1, " and ", options.epsilon_2);
  return options;
}

Shape shape_of_r(const Shape& shape) {
  return shape.rank() < 2 ? Shape{0} : shape.without_axis(-1);
}
Shape shape_of_c(const Shape& shape) {
  return shape.rank() < 2 ? Shape{0} : shape.without_axis(-2);
}
Shape shape_of_v(const Shape& shape) { return shape.rank() < 2 ? shape : Shape{0}; }

Tensor root_mean_square(const Tensor& x) { return sqrt(mean(square(x))); }

}  // namespace

Adafactor::Adafactor(const AdafactorOptions& options, SourceLocation at)
    : Optimizer({.learning_rate = options.learning_rate,
                 .weight_decay = options.weight_decay,
                 .clip = options.clip,
                 .ema = options.ema,
                 .gradient_accumulation_steps = options.gradient_accumulation_steps},
                {{.name = "r", .shape = shape_of_r, .wide = true},
                 {.name = "c", .shape = shape_of_c, .wide = true},
                 {.name = "v", .shape = shape_of_v, .wide = true}},
                at),
      options_(checked(options, at)) {}

void Adafactor::update(const Update& update) const {
  if (update.variable.num_elements() == 0) return;
  const DType dtype = update.variable.dtype();
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor number = cast(update.step, DType::f64);
  const Tensor rate = cast(update.learning_rate, DType::f64);
  const Tensor step = cast(options_.relative_step ? minimum(rate, 1.0 / sqrt(number)) : rate, wide);
  const Tensor fresh = cast(pow(number, options_.beta_2_decay), wide);
  Tensor gradient = cast(update.gradient, wide);
  if (update.gradient_scale.defined()) gradient = gradient * cast(update.gradient_scale, wide);
  const Tensor squares = square(gradient) + options_.epsilon_1;
  const auto mix = [&](const Tensor& old, const Tensor& now) {
    return old * (1.0 - fresh) + now * fresh;
  };
  const std::array state{update.variable, update.slots[0], update.slots[1], update.slots[2]};
  update_values(state, [&](std::array<Tensor, 4>& values) {
    auto& [weights, r, c, v] = values;
    Tensor next_r = r, next_c = c, next_v = v, second;
    if (weights.rank() < 2) {
      second = next_v = mix(v, squares);
    } else {
      next_r = mix(r, mean(squares, {.axes = {-1}}));
      next_c = mix(c, mean(squares, {.axes = {-2}}));
      second = expand_dims(next_r / mean(next_r, {.axes = {-1}, .keep_dims = true}), -1) *
               expand_dims(next_c, -2);
    }
    const Tensor direction = gradient / sqrt(second);
    const Tensor limited =
        direction / maximum(root_mean_square(direction) / options_.clip_threshold, 1.0);
    Tensor w = cast(weights, wide);
    if (update.weight_decay > 0) w = w - w * cast(rate * update.weight_decay, wide);
    const Tensor size = maximum(root_mean_square(w), options_.epsilon_2) * step;
    w = cast(w - limited * size, dtype);
    values = {std::move(w), std::move(next_r), std::move(next_c), std::move(next_v)};
  });
}

}  // namespace lockstep::optim
