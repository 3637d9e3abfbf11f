// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/update_functors.h"

// The update rules that scale the gradient of each element, or of each variable, by what it was.
namespace lockstep {
namespace {

// ---- rates of each element

template <bool centered, bool momentum>
struct RmsPropOf {
  using Options = RmsPropRule;
  static constexpr int kSlots = 1 + momentum + centered, kScalars = 5;
  static constexpr const char* kNames[] = {"velocity", momentum ? "momentum" : "average_gradient",
                                           "average_gradient"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 5> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(options.rho), given.constant(1 - options.rho),
             given.constant(options.momentum), given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 1 + kSlots> element(const Values<V, 5>& s, const V& g,
                                                   const Values<V, 1 + kSlots>& old) {
    using math::sqrt;
    const auto& [rate, rho, rest, persistence, epsilon] = s.of;
    const V& w = old.of[0];
    const V v = rho * old.of[1] + rest * (g * g);
    if constexpr (centered) {
      const V a = rho * old.of[kSlots] + rest * g;
      const V step = rate * g / sqrt(larger(V(v - a * a), V(epsilon * 0)) + epsilon);
      if constexpr (momentum) {
        const V m = persistence * old.of[2] + step;
        return {{w - m, v, m, a}};
      } else {
        return {{w - step, v, a}};
      }
    } else {
      const V step = rate * g / sqrt(v + epsilon);
      if constexpr (momentum) {
        const V m = persistence * old.of[2] + step;
        return {{w - m, v, m}};
      } else {
        return {{w - step, v}};
      }
    }
  }
};
using RmsProp = RmsPropOf<false, false>;
using RmsPropMomentum = RmsPropOf<false, true>;
using RmsPropCentered = RmsPropOf<true, false>;
using RmsPropCenteredMomentum = RmsPropOf<true, true>;

struct Adagrad {
  using Options = AdagradRule;
  static constexpr int kSlots = 1, kScalars = 2;
  static constexpr const char* kNames[] = {"accumulator"};
  static double start(const Options& options, int) { return options.initial_accumulator_value; }
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 2> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> element(const Values<V, 2>& s, const V& g,
                                          const Values<V, 2>& old) {
    using math::sqrt;
    const auto& [rate, epsilon] = s.of;
    const V a = old.of[1] + g * g;
    return {{old.of[0] - rate * g / sqrt(a + epsilon), a}};
  }
};

struct Adadelta {
  using Options = AdadeltaRule;
  static constexpr int kSlots = 2, kScalars = 4;
  static constexpr const char* kNames[] = {"accumulated_grad", "accumulated_delta_var"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 4> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(options.rho), given.constant(1 - options.rho),
             given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, 4>& s, const V& g,
                                          const Values<V, 3>& old) {
    using math::sqrt;
    const auto& [rate, rho, rest, epsilon] = s.of;
    const V a = rho * old.of[1] + rest * (g * g);
    const V delta = sqrt(old.of[2] + epsilon) * g / sqrt(a + epsilon);
    return {{old.of[0] - rate * delta, a, rho * old.of[2] + rest * (delta * delta)}};
  }
};

// Powers are square roots, or any.
template <bool roots>
struct FtrlOf {
  using Options = FtrlRule;
  static constexpr int kSlots = 2, kScalars = 6;
  static constexpr const char* kNames[] = {"accumulator", "linear"};
  static double start(const Options& options, int slot) {
    return slot == 0 ? options.initial_accumulator_value : 0;
  }
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 6> scalars(const Options& options, const Given& given) {
    return {{given.rate, given.constant(-options.learning_rate_power),
             given.constant(options.l1_regularization_strength),
             given.constant(2 * options.l2_regularization_strength),
             given.constant(2 * options.l2_shrinkage_regularization_strength),
             given.constant(options.beta)}};
  }
  template <class V>
  LOCKSTEP_HD static V power(const V& x, [[maybe_unused]] const V& exponent) {
    using math::pow;
    using math::sqrt;
    if constexpr (roots)
      return sqrt(x);
    else
      return pow(x, exponent);
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, 6>& s, const V& g,
                                          const Values<V, 3>& old) {
    const auto& [rate, exponent, l1, twice_l2, twice_shrinkage, beta] = s.of;
    const auto& [w, a, z] = old.of;
    const V next_a = a + g * g;
    const V powered = power(next_a, exponent);
    const V sigma = (powered - power(a, exponent)) / rate;
    const V next_z = z + ((g + twice_shrinkage * w) - sigma * w);
    const V clipped = smaller(larger(next_z, V(-l1)), l1);
    const V quadratic = (powered + beta) / rate + twice_l2;
    const V next_w = if_positive(quadratic, V((clipped - next_z) / quadratic), V(clipped - clipped));
    return {
        {if_positive(rate, next_w, w), if_positive(rate, next_a, a), if_positive(rate, next_z, z)}};
  }
};
using Ftrl = FtrlOf<true>;
using FtrlPower = FtrlOf<false>;

// ---- rates of each variable

struct Lamb {
  using Options = LambRule;
  static constexpr int kSlots = 2, kScalars = 6;
  static constexpr const char* kNames[] = {"m", "v"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 6> scalars(const Options& options, const Given& given) {
    using math::pow;
    return {{given.constant(1 - options.beta_1), given.constant(1 - options.beta_2),
             1 / (1 - pow(options.beta_1, given.number)),
             1 / (1 - pow(options.beta_2, given.number)), given.constant(options.epsilon),
             given.constant(0)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> direction(const Values<V, 6>& s, const V& g,
                                            const Values<V, 3>& old) {
    using math::sqrt;
    const auto& [rest_1, rest_2, of_m, of_v, epsilon, trust] = s.of;
    const V m = towards(old.of[1], g, rest_1);
    const V v = towards(old.of[2], V(g * g), rest_2);
    return {{m * of_m / (sqrt(v * of_v) + epsilon), m, v}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> measured(const Values<V, 6>& s, const V& g,
                                           const Values<V, 3>& old) {
    return {{old.of[0], direction(s, g, old).of[0]}};
  }
  template <class Given>
  LOCKSTEP_HD static auto trust(const Options&, const Given& given,
                                const typename Given::Scalar& weights,
                                const typename Given::Scalar& directions) {
    const auto one = given.constant(1);
    return given.rate * given.if_positive(
                            weights, given.if_positive(directions, weights / directions, one), one);
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, 6>& s, const V& g,
                                          const Values<V, 3>& old) {
    const Values<V, 3> next = direction(s, g, old);
    return {{old.of[0] - s.of[5] * next.of[0], next.of[1], next.of[2]}};
  }
};

struct Lars {
  using Options = LarsRule;
  static constexpr int kSlots = 1, kScalars = 3;
  static constexpr bool kOwnDecay = true;
  static constexpr const char* kNames[] = {"velocity"};
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 3> scalars(const Options& options, const Given& given) {
    return {
        {given.constant(options.momentum), given.constant(given.weight_decay), given.constant(0)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> measured(const Values<V, 3>&, const V& g,
                                           const Values<V, 2>& old) {
    return {{old.of[0], g}};
  }
  template <class Given>
  LOCKSTEP_HD static auto trust(const Options& options, const Given& given,
                                const typename Given::Scalar& weights,
                                const typename Given::Scalar& gradients) {
    const auto one = given.constant(1);
    const auto local = options.trust_coefficient * weights /
                       (gradients + given.weight_decay * weights + options.epsilon);
    return given.rate * given.if_positive(weights, given.if_positive(gradients, local, one), one);
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> element(const Values<V, 3>& s, const V& g,
                                          const Values<V, 2>& old) {
    const auto& [momentum, decay, trust] = s.of;
    const auto& [w, v] = old.of;
    const V moved = momentum * v + trust * (g + decay * w);
    return {{w - moved, moved}};
  }
};

// ---- averages

struct Average {
  using Options = AverageRule;
  static constexpr int kSlots = 0, kScalars = 2;
  template <class Given>
  LOCKSTEP_HD static ScalarsOf<Given, 2> scalars(const Options& options, const Given& given) {
    const auto momentum =
        given.if_positive(given.number - 1, given.constant(options.momentum), given.constant(0));
    return {{momentum, 1 - momentum}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 1> element(const Values<V, 2>& s, const V& g,
                                          const Values<V, 1>& old) {
    return {{s.of[0] * old.of[0] + s.of[1] * g}};
  }
};

}  // namespace
}  // namespace lockstep
