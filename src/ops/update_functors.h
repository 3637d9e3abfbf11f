// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update_rule.h>

#include "ops/binary_list.h"
#include "ops/functor.h"
#include "ops/unary_list.h"

// Update rules, a functor each; lockstep/ops/update_rule.h says what they compute. CPU kernels of each
// instruction set, CUDA kernels and the program of a TPU are made of the list in update_list.h. To add
// one: its functor, here or in scaled_update_functors.h, its name in the list, its options in
// UpdateRule with OnlyFunctor or pick_update_rule(), and a row in tests/support/update_rows.h. A
// functor says
//
//   Options          the alternative of UpdateRule that it is for; several functors may share one
//   kSlots, kNames   how many slots it has, and how they are called where there are any
//   start(options, slot)
//                    what a slot starts at where that is not 0 for all
//   kScalars         how many numbers all elements share, which
//   scalars(options, given)
//                    prepares: `given` (GivenNumbers below) is of double, or of f64 expressions of
//                    StableHLO. They are rounded to the type that elements are computed in.
//   element(s, g, old)
//                    the new weight and slots of one element from those scalars, the gradient and the
//                    old weight and slots. V is float, double or an expression. The gradient is
//                    scaled and the weight decayed already, unless kOwnDecay.
// and if it depends on norms of the variable
//   measured(s, g, old)
//                    two values of each element
//   trust(options, given, first, second)
//                    the last of the scalars, from their 2-norms; in scalars() it stands for nothing.
namespace lockstep {
namespace {

template <class V, int n>
struct Values {
  V of[n];
};

// What scalars are prepared from on CPUs and GPUs.
struct GivenNumbers {
  using Scalar = double;
  double rate, number, weight_decay;
  LOCKSTEP_HD static double constant(double value) { return value; }
  LOCKSTEP_HD static double if_positive(double x, double yes, double no) {
    return x > 0 ? yes : no;
  }
};

template <class Given, int n>
using ScalarsOf = Values<typename Given::Scalar, n>;

// Functions of an element.
template <class V>
[[maybe_unused]] LOCKSTEP_HD inline V larger(const V& a, const V& b) {
  if constexpr (std::is_arithmetic_v<V>)
    return Maximum::forward(a, b);
  else
    return Maximum::traced(a, b);
}
template <class V>
[[maybe_unused]] LOCKSTEP_HD inline V smaller(const V& a, const V& b) {
  if constexpr (std::is_arithmetic_v<V>)
    return Minimum::forward(a, b);
  else
    return Minimum::traced(a, b);
}
template <class V>
[[maybe_unused]] LOCKSTEP_HD inline V sign_of(const V& x) {
  if constexpr (std::is_arithmetic_v<V>)
    return Sign::forward(x);
  else
    return Sign::traced(x);
}
template <class V>
[[maybe_unused]] LOCKSTEP_HD inline V if_positive(const V& x, const V& yes, const V& no) {
  if constexpr (std::is_arithmetic_v<V>)
    return x > V(0) ? yes : no;
  else
    return select(x > 0, yes, no);
}
// old + (x - old) rest: the running mean that forgets `rest` of what was.
template <class V>
[[maybe_unused]] LOCKSTEP_HD inline V towards(const V& old, const V& x, const V& rest) {
  return old + (x - old) * rest;
}

// ---- gradient descent

struct Sgd {
  using Options = SgdRule;
  static constexpr int kSlots = 0, kScalars = 1;
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 1> scalars(const Options&, const Given& given) {
    return {{given.rate}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 1> element(const Values<V, 1>& s, const V& g,
                                          const Values<V, 1>& old) {
    return {{old.of[0] - s.of[0] * g}};
  }
};

template <bool nesterov>
struct MomentumOf {
  using Options = SgdRule;
  static constexpr int kSlots = 1, kScalars = 2;
  static constexpr const char* kNames[] = {"velocity"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 2> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(options.momentum)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> element(const Values<V, 2>& s, const V& g,
                                          const Values<V, 2>& old) {
    const auto& [rate, momentum] = s.of;
    const auto& [w, v] = old.of;
    const V change = rate * g;
    const V moved = momentum * v - change;
    if constexpr (nesterov)
      return {{w + (momentum * moved - change), moved}};
    else
      return {{w + moved, moved}};
  }
};
using Momentum = MomentumOf<false>;
using Nesterov = MomentumOf<true>;

// ---- Adam and its kin

template <bool amsgrad>
struct AdamOf {
  using Options = AdamRule;
  static constexpr int kSlots = amsgrad ? 3 : 2, kScalars = 4;
  static constexpr const char* kNames[] = {"m", "v", "v_hat"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 4> scalars(const Options& options, const Given& given) {
    using math::pow;
    using math::sqrt;
    return {{given.rate * sqrt(1 - pow(options.beta_2, given.number)) /
                 (1 - pow(options.beta_1, given.number)),
             given.constant(1 - options.beta_1), given.constant(1 - options.beta_2),
             given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 1 + kSlots> element(const Values<V, 4>& s, const V& g,
                                                   const Values<V, 1 + kSlots>& old) {
    using math::sqrt;
    const auto& [rate, rest_1, rest_2, epsilon] = s.of;
    const V m = towards(old.of[1], g, rest_1);
    const V v = towards(old.of[2], V(g * g), rest_2);
    if constexpr (amsgrad) {
      const V v_hat = larger(old.of[3], v);
      return {{old.of[0] - rate * m / (sqrt(v_hat) + epsilon), m, v, v_hat}};
    } else {
      return {{old.of[0] - rate * m / (sqrt(v) + epsilon), m, v}};
    }
  }
};
using Adam = AdamOf<false>;
using Amsgrad = AdamOf<true>;

struct Adamax {
  using Options = AdamaxRule;
  static constexpr int kSlots = 2, kScalars = 4;
  static constexpr const char* kNames[] = {"m", "u"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 4> scalars(const Options& options, const Given& given) {
    using math::pow;
    return {{given.rate / (1 - pow(options.beta_1, given.number)),
             given.constant(1 - options.beta_1), given.constant(options.beta_2),
             given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, 4>& s, const V& g,
                                          const Values<V, 3>& old) {
    using math::abs;
    const auto& [rate, rest_1, beta_2, epsilon] = s.of;
    const V m = towards(old.of[1], g, rest_1);
    const V u = larger(V(beta_2 * old.of[2]), V(abs(g)));
    return {{old.of[0] - rate * m / (u + epsilon), m, u}};
  }
};

struct Nadam {
  using Options = NadamRule;
  static constexpr int kSlots = 2, kScalars = 6;
  static constexpr const char* kNames[] = {"m", "v"};
  // The product of 1 - 0.96^i / 2 for i = 1 ... t, by the series of its logarithm,
  // -sum over k of (1/2)^k / k 0.96^k (1 - 0.96^{k t}) / (1 - 0.96^k): 48 terms are exact to 1e-17.
  template <class D>
  LOCKSTEP_HD static D product(const D& t) {
    using math::exp;
    using math::pow;
    const D far = pow(0.96, t);
    D far_k = far, total = (1 - far) * 0.0;
    double near_k = 0.96, half_k = 0.5;
    for (int k = 1; k <= 48; ++k) {
      total = total - (1 - far_k) * (half_k / k * near_k / (1 - near_k));
      far_k = far_k * far;
      near_k *= 0.96;
      half_k *= 0.5;
    }
    return exp(total);
  }
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 6> scalars(const Options& options, const Given& given) {
    using D = typename Given::Scalar;
    using math::pow;
    const D& t = given.number;
    const D here = options.beta_1 * (1 - 0.5 * pow(0.96, t));
    const D next = options.beta_1 * (1 - 0.5 * pow(0.96, t + 1));
    const D all = pow(options.beta_1, t) * product(t);
    return {{given.rate * next / (1 - all * next), given.rate * (1 - here) / (1 - all),
             1 / (1 - pow(options.beta_2, t)), given.constant(1 - options.beta_1),
             given.constant(1 - options.beta_2), given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, 6>& s, const V& g,
                                          const Values<V, 3>& old) {
    using math::sqrt;
    const auto& [of_m, of_g, of_v, rest_1, rest_2, epsilon] = s.of;
    const V m = towards(old.of[1], g, rest_1);
    const V v = towards(old.of[2], V(g * g), rest_2);
    return {{old.of[0] - (of_m * m + of_g * g) / (sqrt(v * of_v) + epsilon), m, v}};
  }
};

struct Lion {
  using Options = LionRule;
  static constexpr int kSlots = 1, kScalars = 5;
  static constexpr const char* kNames[] = {"m"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 5> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(options.beta_1), given.constant(1 - options.beta_1),
             given.constant(options.beta_2), given.constant(1 - options.beta_2)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> element(const Values<V, 5>& s, const V& g,
                                          const Values<V, 2>& old) {
    const auto& [rate, beta_1, rest_1, beta_2, rest_2] = s.of;
    const auto& [w, m] = old.of;
    return {{w - rate * sign_of(V(m * beta_1 + g * rest_1)), m * beta_2 + g * rest_2}};
  }
};

}  // namespace
}  // namespace lockstep
