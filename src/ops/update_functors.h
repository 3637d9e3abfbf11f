// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update_rule.h>

#include "ops/functor.h"

// Update rules, a functor each; lockstep/ops/update_rule.h says what they compute. CPU kernels of each
// instruction set, CUDA kernels and the program of a TPU are made of the list that ends the file. To
// add one: its functor, its name in the list, its options in UpdateRule, and a row in
// tests/support/update_rows.h. A functor says
//
//   Options          the alternative of UpdateRule that it is for; two functors may share one, and
//                    visit_update_rule() picks
//   kSlots, names    how many slots it has, and where that is not 0 how they are called
//   start(options)   of all slots, where they do not start at 0
//   kScalars         how many numbers all elements share, which
//   scalars(options, given)
//                    prepares: `given` has rate and number of the update and given.constant(x); all of
//                    them double, or f64 expressions of StableHLO. They are rounded to the type that
//                    elements are computed in.
//   element(s, g, old)
//                    the new weight and slots of one element from those scalars, the gradient and the
//                    old weight and slots. V is float, double or an expression. The gradient is
//                    scaled and the weight decayed already.
namespace lockstep {
namespace {

template <class V, int n>
struct Values {
  V of[n];
};

struct Sgd {
  using Options = SgdRule;
  static constexpr int kSlots = 0, kScalars = 1;
  template <class Given>
  LOCKSTEP_HD static auto scalars(const Options&, const Given& given) {
    return Values<typename Given::Scalar, kScalars>{{given.rate}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 1> element(const Values<V, kScalars>& s, const V& g,
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
  LOCKSTEP_HD static auto scalars(const Options& options, const Given& given) {
    return Values<typename Given::Scalar, kScalars>{{given.rate, given.constant(options.momentum)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 2> element(const Values<V, kScalars>& s, const V& g,
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

struct Adam {
  using Options = AdamRule;
  static constexpr int kSlots = 2, kScalars = 4;
  static constexpr const char* kNames[] = {"m", "v"};
  template <class Given>
  LOCKSTEP_HD static auto scalars(const Options& options, const Given& given) {
    using math::pow;
    using math::sqrt;
    return Values<typename Given::Scalar, kScalars>{
        {given.rate * sqrt(1 - pow(options.beta_2, given.number)) /
             (1 - pow(options.beta_1, given.number)),
         given.constant(1 - options.beta_1), given.constant(1 - options.beta_2),
         given.constant(options.epsilon)}};
  }
  template <class V>
  LOCKSTEP_HD static Values<V, 3> element(const Values<V, kScalars>& s, const V& g,
                                          const Values<V, 3>& old) {
    using math::sqrt;
    const auto& [rate, rest_1, rest_2, epsilon] = s.of;
    const auto& [w, old_m, old_v] = old.of;
    const V m = old_m + (g - old_m) * rest_1;
    const V v = old_v + (g * g - old_v) * rest_2;
    return {{w - rate * m / (sqrt(v) + epsilon), m, v}};
  }
};

#define LOCKSTEP_UPDATE_RULES(op) \
  op(sgd, Sgd) op(momentum, Momentum) op(nesterov, Nesterov) op(adam, Adam)

// Calls f(Functor{}, options) with the functor for a rule.
template <class F>
[[maybe_unused]] auto pick_update_rule(const SgdRule& rule, F& f) {
  if (rule.momentum == 0) return f(Sgd{}, rule);
  return rule.nesterov ? f(Nesterov{}, rule) : f(Momentum{}, rule);
}
template <class F>
[[maybe_unused]] auto pick_update_rule(const AdamRule& rule, F& f) {
  return f(Adam{}, rule);
}
template <class F>
[[maybe_unused]] auto visit_update_rule(const UpdateRule& rule, F&& f) {
  return std::visit([&](const auto& options) { return pick_update_rule(options, f); }, rule);
}

// The functors' places in the list.
#define LOCKSTEP_UPDATE_KIND(name, Functor) name,
enum class UpdateKind { LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_KIND) count };
#undef LOCKSTEP_UPDATE_KIND
template <class Functor>
inline constexpr UpdateKind kUpdateKind = UpdateKind::count;
#define LOCKSTEP_UPDATE_KIND(name, Functor) \
  template <>                               \
  inline constexpr UpdateKind kUpdateKind<Functor> = UpdateKind::name;
LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_KIND)
#undef LOCKSTEP_UPDATE_KIND
inline constexpr int kUpdateKinds = static_cast<int>(UpdateKind::count);

// The most that a functor has.
#define LOCKSTEP_UPDATE_STATE(name, Functor) 1 + Functor::kSlots,
#define LOCKSTEP_UPDATE_SCALARS(name, Functor) Functor::kScalars,
constexpr int most(std::initializer_list<int> counts) {
  int largest = 0;
  for (const int count : counts) largest = count > largest ? count : largest;
  return largest;
}
inline constexpr int kMaxUpdateState = most({LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_STATE)});
inline constexpr int kMaxUpdateScalars = most({LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_SCALARS)});
#undef LOCKSTEP_UPDATE_STATE
#undef LOCKSTEP_UPDATE_SCALARS

// What scalars are prepared from on CPUs and GPUs.
struct GivenNumbers {
  using Scalar = double;
  double rate, number;
  LOCKSTEP_HD static double constant(double value) { return value; }
};

}  // namespace
}  // namespace lockstep
