// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/functor.h"

// The activations among the elementwise ops of unary_list.h; see functor.h.
namespace lockstep {
namespace {

// sigmoid(x) and sigmoid(-x), both to full accuracy where they are close to 0.
template <class T>
struct Logistic {
  T value, rest;
};
template <class T>
LOCKSTEP_SCALAR Logistic<T> logistic(T x) {
  const T e = math::exp_minus(math::abs(x));
  const T large = T(1) / (T(1) + e), small = e * large;
  return x < T(0) ? Logistic<T>{small, large} : Logistic<T>{large, small};
}

struct Relu : OnSigned {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return x < T(0) ? T(0) : x;
  }  // NaN stays NaN
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    if constexpr (std::is_arithmetic_v<V>)
      return y > V(0) ? V(1) : V(0);
    else
      return sign(y);
  }
  template <class E>
  static E traced(const E& x) {
    return maximum(x, 0);
  }
};

struct Elu : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    const T below = math::expm1(x);
    return x > T(0) ? x : below;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    if constexpr (std::is_arithmetic_v<V>)
      return (y > V(0) ? V(0) : y) + V(1);
    else
      return minimum(y, 0) + 1;
  }
  template <class E>
  static E traced(const E& x) {
    return select(x > 0, x, expm1(x));
  }
};

struct Sigmoid : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::sigmoid(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return y * (Number<V>(1) - y);
  }
  template <class E>
  static E traced(const E& x) {
    return sigmoid(x);
  }
};

// x sigmoid(x).
struct Silu : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return x * logistic(x).value;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    if constexpr (std::is_arithmetic_v<V>) {
      const Logistic<V> at = logistic(x);
      return at.value * (V(1) + x * at.rest);
    } else {
      const V s = sigmoid(x);
      return s * (1 + x * (1 - s));
    }
  }
  template <class E>
  static E traced(const E& x) {
    return x * sigmoid(x);
  }
};

// log(1 + exp(x)).
struct Softplus : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return (x > T(0) ? x : T(0)) + math::log1p_exp_minus(math::abs(x));
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    if constexpr (std::is_arithmetic_v<V>)
      return logistic(x).value;
    else
      return sigmoid(x);
  }
  template <class E>
  static E traced(const E& x) {
    return maximum(x, 0) + log1p(exp(-abs(x)));
  }
};

// x times the normal distribution function of x.
struct Gelu : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return x * math::normal(x).cdf;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    if constexpr (std::is_arithmetic_v<V>) {
      const math::Normal<V> at = math::normal(x);
      return at.cdf + x * (V(kDensity) * at.bell);
    } else {
      const V cdf = 0.5 * (1 + erf(0.70710678118654752440 * x));
      return cdf + x * (kDensity * exp(-0.5 * square(x)));
    }
  }
  template <class E>
  static E traced(const E& x) {
    return 0.5 * x * (1 + erf(0.70710678118654752440 * x));
  }
};

// x (1 + tanh(u)) / 2, which is x sigmoid(2 u), for u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  static constexpr double kLinear = 1.59576912160573071176;  // 2 sqrt(2 / pi)
  static constexpr double kCubic = 0.044715;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return x * logistic(T(kLinear) * (x + T(kCubic) * x * x * x)).value;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    if constexpr (std::is_arithmetic_v<V>) {
      const V z = x * x;
      const Logistic<V> at = logistic(V(kLinear) * (x + V(kCubic) * z * x));
      return at.value * (V(1) + x * at.rest * (V(kLinear) * (V(1) + V(3 * kCubic) * z)));
    } else {
      const V z = square(x);
      const V s = sigmoid(kLinear * (x + kCubic * (z * x)));
      return s * (1 + x * (1 - s) * (kLinear * (1 + 3 * kCubic * z)));
    }
  }
  template <class E>
  static E traced(const E& x) {
    return 0.5 * x * (1 + tanh(0.5 * kLinear * (x + kCubic * (x * x * x))));
  }
};

}  // namespace
}  // namespace lockstep
