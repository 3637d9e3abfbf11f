// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <variant>

#include "ops/scaled_update_functors.h"
#include "ops/update_functors.h"

// All update rules; see update_functors.h.
namespace lockstep {
namespace {

#define LOCKSTEP_UPDATE_RULES(op)                                                                \
  op(sgd, Sgd) op(momentum, Momentum) op(nesterov, Nesterov) op(adam, Adam) op(amsgrad, Amsgrad) \
      op(adamax, Adamax) op(nadam, Nadam) op(rms_prop, RmsProp)                                  \
          op(rms_prop_momentum, RmsPropMomentum) op(rms_prop_centered, RmsPropCentered)          \
              op(rms_prop_centered_momentum, RmsPropCenteredMomentum) op(adagrad, Adagrad)       \
                  op(adadelta, Adadelta) op(ftrl, Ftrl) op(ftrl_power, FtrlPower) op(lion, Lion) \
                      op(lamb, Lamb) op(lars, Lars) op(average, Average)

// ---- from a rule to its functor

// f(Functor{}, rule).
template <class F>
[[maybe_unused]] auto pick_update_rule(const SgdRule& rule, F& f) {
  if (rule.momentum == 0) return f(Sgd{}, rule);
  return rule.nesterov ? f(Nesterov{}, rule) : f(Momentum{}, rule);
}
template <class F>
[[maybe_unused]] auto pick_update_rule(const AdamRule& rule, F& f) {
  return rule.amsgrad ? f(Amsgrad{}, rule) : f(Adam{}, rule);
}
template <class F>
[[maybe_unused]] auto pick_update_rule(const RmsPropRule& rule, F& f) {
  if (rule.momentum == 0) return rule.centered ? f(RmsPropCentered{}, rule) : f(RmsProp{}, rule);
  return rule.centered ? f(RmsPropCenteredMomentum{}, rule) : f(RmsPropMomentum{}, rule);
}
template <class F>
[[maybe_unused]] auto pick_update_rule(const FtrlRule& rule, F& f) {
  return rule.learning_rate_power == -0.5 ? f(Ftrl{}, rule) : f(FtrlPower{}, rule);
}
// Of a rule that has one only.
template <class Rule>
struct OnlyFunctor;
template <>
struct OnlyFunctor<AdamaxRule> {
  using type = Adamax;
};
template <>
struct OnlyFunctor<NadamRule> {
  using type = Nadam;
};
template <>
struct OnlyFunctor<AdagradRule> {
  using type = Adagrad;
};
template <>
struct OnlyFunctor<AdadeltaRule> {
  using type = Adadelta;
};
template <>
struct OnlyFunctor<LionRule> {
  using type = Lion;
};
template <>
struct OnlyFunctor<LambRule> {
  using type = Lamb;
};
template <>
struct OnlyFunctor<LarsRule> {
  using type = Lars;
};
template <>
struct OnlyFunctor<AverageRule> {
  using type = Average;
};
template <class Rule, class F>
[[maybe_unused]] auto pick_update_rule(const Rule& rule, F& f) {
  return f(typename OnlyFunctor<Rule>::type{}, rule);
}

// Calls f(Functor{}, options) with the functor for a rule.
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

// What a functor may have.
template <class Functor>
inline constexpr bool kOwnDecay = requires { Functor::kOwnDecay; };
template <class Functor>
inline constexpr bool kMeasures = requires(typename Functor::Options options, GivenNumbers given) {
  Functor::trust(options, given, 0.0, 0.0);
};

// The most that a functor has.
constexpr int most(std::initializer_list<int> counts) {
  int largest = 0;
  for (const int count : counts) largest = count > largest ? count : largest;
  return largest;
}
#define LOCKSTEP_UPDATE_STATE(name, Functor) 1 + Functor::kSlots,
#define LOCKSTEP_UPDATE_SCALARS(name, Functor) Functor::kScalars,
inline constexpr int kMaxUpdateState = most({LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_STATE)});
inline constexpr int kMaxUpdateScalars = most({LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE_SCALARS)});
#undef LOCKSTEP_UPDATE_STATE
#undef LOCKSTEP_UPDATE_SCALARS

}  // namespace
}  // namespace lockstep
