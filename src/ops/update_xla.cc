// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "ops/hlo.h"
#include "ops/traced.h"
#include "ops/update_bodies.h"
#include "ops/update_list.h"

namespace lockstep::traced {
namespace {

using hlo::Element;
using hlo::Expr;

constexpr const char* kOp = "apply_update";

// Scalars are prepared in f64 as on CPUs, and used in the type that elements are computed in.
Expr scalar(const Tensor& x) {
  return hlo::convert(hlo::reshape(hlo::operand(kOp, x), Shape{}), Element::f64);
}

struct TracedNumbers {
  using Scalar = Expr;
  Expr rate, number;
  double weight_decay;
  static Expr constant(double value) { return hlo::constant(value, {Element::f64, Shape{}}); }
  static Expr if_positive(const Expr& x, const Expr& yes, const Expr& no) {
    return hlo::select(x > 0, yes, no);
  }
};

// What an update computes with, in the type that elements are computed in.
struct Operands {
  Element element;
  Expr gradient, rate, number;
  std::vector<Expr> state;  // as arguments

  Operands(std::span<const Tensor> tensors, const Tensor& from, const UpdateStep& step)
      : element(hlo::wide_operand(kOp, from).element()),
        gradient(hlo::wide_operand(kOp, from)),
        rate(scalar(step.learning_rate)),
        number(scalar(step.number)) {
    if (step.gradient_scale.defined())
      gradient = gradient * in_element(scalar(step.gradient_scale));
    for (const Tensor& tensor : tensors) state.push_back(hlo::operand(kOp, tensor));
  }
  Expr in_element(const Expr& x) const { return hlo::convert(x, element); }
  Expr weights(double decay) const {
    const Expr w = in_element(state[0]);
    return decay == 0 ? w : w - w * in_element(rate * decay);
  }
};

// f(0), f(1) ...
template <int n, class F>
Values<Expr, n> values(F&& f) {
  return [&]<int... k>(std::integer_sequence<int, k...>) {
    return Values<Expr, n>{{f(k)...}};
  }(std::make_integer_sequence<int, n>());
}

Expr norm(const Expr& x) {
  const Expr wide = hlo::convert(x, Element::f64);
  return hlo::sqrt(hlo::reduce("add", wide * wide, TracedNumbers::constant(0),
                               hlo::axes_up_to(x.shape().rank())));
}

// The new weights and slots.
template <class Rule>
auto updated(const typename Rule::Options& options, const Operands& in, double weight_decay) {
  const TracedNumbers given{in.rate, in.number, weight_decay};
  const auto old = values<1 + Rule::kSlots>([&](int k) {
    return k == 0 ? in.weights(kOwnDecay<Rule> ? 0 : weight_decay)
                  : in.in_element(in.state[static_cast<std::size_t>(k)]);
  });
  const auto prepared = Rule::scalars(options, given);
  auto scalars = values<Rule::kScalars>([&](int k) { return in.in_element(prepared.of[k]); });
  if constexpr (kMeasures<Rule>) {
    const auto measured = Rule::measured(scalars, in.gradient, old);
    scalars.of[Rule::kScalars - 1] =
        in.in_element(Rule::trust(options, given, norm(measured.of[0]), norm(measured.of[1])));
  }
  return Rule::element(scalars, in.gradient, old);
}

}  // namespace

void update(const UpdateRule& rule, std::span<Tensor> state, const Tensor& gradient,
            const UpdateStep& step) {
  const Operands in(state, gradient, step);
  visit_update_rule(rule, [&]<class Rule>(Rule, const auto& options) {
    const auto next = updated<Rule>(options, in, step.weight_decay);
    for (std::size_t k = 0; k < state.size(); ++k)
      state[k] = hlo::tensor_in_place_of(in.state[k], next.of[k], gradient.dtype());
  });
}

Tensor is_finite_all(std::span<const Tensor> tensors) {
  Expr all = hlo::constant(1, {Element::boolean, Shape{}});
  for (const Tensor& x : tensors) {
    const Expr value = hlo::wide_operand("is_finite_all", x);
    const Expr yes = hlo::constant(1, {Element::boolean, Shape{}});
    all = all & hlo::reduce("and", hlo::is_finite(value), yes, hlo::axes_up_to(x.rank()));
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
