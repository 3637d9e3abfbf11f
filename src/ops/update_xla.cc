// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Element;
using hlo::Expr;

// Scalars are prepared in f64 as on CPUs, and used in the type that elements are computed in.
Expr scalar(const char* op, const Tensor& x) {
  return hlo::convert(hlo::reshape(hlo::operand(op, x), Shape{}), Element::f64);
}

Expr scaled(const char* op, const Tensor& gradient, const Tensor& scale) {
  const Expr g = hlo::wide_operand(op, gradient);
  return scale.defined() ? g * hlo::convert(scalar(op, scale), g.element()) : g;
}

Expr decayed(const Expr& weights, const Expr& rate, double decay) {
  if (decay == 0) return weights;
  return weights - weights * hlo::convert(rate * decay, weights.element());
}

}  // namespace

AdamState adam(const AdamState& state, const Tensor& gradient, const Tensor& learning_rate,
               const Tensor& step, const AdamOptions& options, const Tensor& gradient_scale) {
  constexpr const char* op = "adam_update";
  const DType dtype = state.weights.dtype();
  const Expr g = scaled(op, gradient, gradient_scale);
  const Expr rate = scalar(op, learning_rate), number = scalar(op, step);
  const auto bias = [&](double beta) {  // 1 - beta^step
    return 1 - hlo::pow(beta, number);
  };
  const Expr corrected =
      hlo::convert(rate * hlo::sqrt(bias(options.beta2)) / bias(options.beta1), g.element());
  const Expr old_w = hlo::operand(op, state.weights), old_m = hlo::operand(op, state.first),
             old_v = hlo::operand(op, state.second);
  const auto wide = [&](const Expr& x) { return hlo::convert(x, g.element()); };
  const Expr m = wide(old_m) + (g - wide(old_m)) * (1 - options.beta1);
  const Expr v = wide(old_v) + (g * g - wide(old_v)) * (1 - options.beta2);
  const Expr w = decayed(wide(old_w), rate, options.weight_decay) -
                 corrected * m / (hlo::sqrt(v) + options.epsilon);
  return {hlo::tensor_in_place_of(old_w, w, dtype), hlo::tensor_in_place_of(old_m, m, dtype),
          hlo::tensor_in_place_of(old_v, v, dtype)};
}

SgdState sgd(const SgdState& state, const Tensor& gradient, const Tensor& learning_rate,
             const SgdOptions& options, const Tensor& gradient_scale) {
  constexpr const char* op = "sgd_update";
  const DType dtype = state.weights.dtype();
  const Expr g = scaled(op, gradient, gradient_scale);
  const Expr rate = scalar(op, learning_rate);
  const Expr change = hlo::convert(rate, g.element()) * g;
  const Expr old_w = hlo::operand(op, state.weights);
  const Expr kept = decayed(hlo::convert(old_w, g.element()), rate, options.weight_decay);
  if (options.momentum == 0)
    return {hlo::tensor_in_place_of(old_w, kept - change, dtype), state.velocity};
  const Expr old_v = hlo::operand(op, state.velocity);
  const Expr v = options.momentum * hlo::convert(old_v, g.element()) - change;
  const Expr w = kept + (options.nesterov ? options.momentum * v - change : v);
  return {hlo::tensor_in_place_of(old_w, w, dtype), hlo::tensor_in_place_of(old_v, v, dtype)};
}

Tensor is_finite_all(std::span<const Tensor> tensors) {
  Expr all = hlo::constant(1, {Element::boolean, Shape{}});
  for (const Tensor& x : tensors) {
    const Expr value = hlo::wide_operand("is_finite_all", x);
    const Expr yes = hlo::constant(1, {Element::boolean, Shape{}});
    all = all & hlo::reduce("and", hlo::equal(value * 0, 0), yes, hlo::axes_up_to(x.rank()));
  }
  return hlo::tensor(all, DType::boolean);
}

Tensor global_norm(std::span<const Tensor> tensors) {
  const hlo::Type type{Element::f64, Shape{}};
  Expr squares = hlo::constant(0, type);
  for (const Tensor& x : tensors) {
    const Expr value = hlo::convert(hlo::operand("global_norm", x), Element::f64);
    squares = squares +
              hlo::reduce("add", value * value, hlo::constant(0, type), hlo::axes_up_to(x.rank()));
  }
  return hlo::tensor(hlo::sqrt(squares), DType::f32);
}

}  // namespace lockstep::traced
