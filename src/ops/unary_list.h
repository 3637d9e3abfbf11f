// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/activation_functors.h"
#include "ops/functor.h"

// Elementwise ops of one tensor; see functor.h.
namespace lockstep {
namespace {

struct Neg : OnSigned {
  static constexpr Keeps kKeeps = kNothing;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(Wrapped<T>(0) - Wrapped<T>(x));
    return -x;
  }
  template <class V>
  LOCKSTEP_HD static auto derivative(const V&) {
    return Number<V>(-1);
  }
  template <class E>
  static E traced(const E& x) {
    return -x;
  }
};

struct Sign : OnSigned {
  template <class T>
  LOCKSTEP_HD static T forward(T x) {  // NaN stays NaN
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
  }
  template <class E>
  static E traced(const E& x) {
    return sign(x);
  }
};

struct Abs : OnSigned {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    if constexpr (std::is_floating_point_v<T>) return math::abs(x);
    return x < T(0) ? static_cast<T>(Wrapped<T>(0) - Wrapped<T>(x)) : x;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    if constexpr (std::is_arithmetic_v<V>)
      return Sign::forward(x);
    else
      return sign(x);
  }
  template <class E>
  static E traced(const E& x) {
    return abs(x);
  }
};

struct Sqrt : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::sqrt(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return Number<V>(0.5) / y;
  }
  template <class E>
  static E traced(const E& x) {
    return sqrt(x);
  }
};

struct Rsqrt : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return T(1) / math::sqrt(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return Number<V>(-0.5) * y * y * y;
  }
  template <class E>
  static E traced(const E& x) {
    return 1 / sqrt(x);
  }
};

struct Exp : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::exp(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return y;
  }
  template <class E>
  static E traced(const E& x) {
    return exp(x);
  }
};

struct Expm1 : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::expm1(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return y + Number<V>(1);
  }
  template <class E>
  static E traced(const E& x) {
    return expm1(x);
  }
};

struct Log : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::log(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    return Number<V>(1) / x;
  }
  template <class E>
  static E traced(const E& x) {
    return log(x);
  }
};

struct Log1p : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::log1p(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    return Number<V>(1) / (x + Number<V>(1));
  }
  template <class E>
  static E traced(const E& x) {
    return log1p(x);
  }
};

struct Tanh : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::tanh(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return Number<V>(1) - y * y;
  }
  template <class E>
  static E traced(const E& x) {
    return tanh(x);
  }
};

struct Erf : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::erf(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    using math::exp;  // 2 / sqrt(pi) exp(-x^2)
    return Number<V>(1.12837916709551257390) * exp(-(x * x));
  }
  template <class E>
  static E traced(const E& x) {
    return erf(x);
  }
};

struct Square : OnNumbers {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return static_cast<T>(Wrapped<T>(x) * Wrapped<T>(x));
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    return Number<V>(2) * x;
  }
  template <class E>
  static E traced(const E& x) {
    return x * x;
  }
};

struct Reciprocal : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return T(1) / x;
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return -(y * y);
  }
  template <class E>
  static E traced(const E& x) {
    return 1 / x;
  }
};

struct Floor : OnFloats {
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::floor(x);
  }
  template <class E>
  static E traced(const E& x) {
    return floor(x);
  }
};

struct Ceil : OnFloats {
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::ceil(x);
  }
  template <class E>
  static E traced(const E& x) {
    return ceil(x);
  }
};

struct Round : OnFloats {
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::round(x);
  }
  template <class E>
  static E traced(const E& x) {
    return round(x);
  }
};

// The vector code of float reaches to kTrigonometricLimit.
struct OnAngles : OnFloats {
#if !defined(__CUDACC__)
  static bool is_far(float x) { return math::abs(x) > math::kTrigonometricLimit; }
#endif
};

struct Sin : OnAngles {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::sin(x);
  }
  static float far(float x) { return static_cast<float>(__builtin_sin(static_cast<double>(x))); }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    using math::cos;
    return cos(x);
  }
  template <class E>
  static E traced(const E& x) {
    return sin(x);
  }
};

struct Cos : OnAngles {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::cos(x);
  }
  static float far(float x) { return static_cast<float>(__builtin_cos(static_cast<double>(x))); }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    using math::sin;
    return -sin(x);
  }
  template <class E>
  static E traced(const E& x) {
    return cos(x);
  }
};

struct Tan : OnAngles {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::tan(x);
  }
  static float far(float x) { return static_cast<float>(__builtin_tan(static_cast<double>(x))); }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& y) {
    return Number<V>(1) + y * y;
  }
  template <class E>
  static E traced(const E& x) {
    return sin(x) / cos(x);
  }
};

struct Atan : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  LOCKSTEP_HD static T forward(T x) {
    return math::atan(x);
  }
  template <class V>
  LOCKSTEP_HD static V derivative(const V& x) {
    return Number<V>(1) / (Number<V>(1) + x * x);
  }
  template <class E>
  static E traced(const E& x) {
    return atan(x);
  }
};

#define LOCKSTEP_UNARY_OPS(op)                                                                    \
  op(neg, Neg) op(sign, Sign) op(abs, Abs) op(sqrt, Sqrt) op(rsqrt, Rsqrt) op(exp, Exp)           \
      op(expm1, Expm1) op(log, Log) op(log1p, Log1p) op(tanh, Tanh) op(sigmoid, Sigmoid)          \
          op(erf, Erf) op(gelu, Gelu) op(gelu_tanh, GeluTanh) op(relu, Relu) op(elu, Elu)         \
              op(silu, Silu) op(softplus, Softplus) op(square, Square) op(reciprocal, Reciprocal) \
                  op(floor, Floor) op(ceil, Ceil) op(round, Round) op(sin, Sin) op(cos, Cos)      \
                      op(tan, Tan) op(atan, Atan)

// ---- predicates; the result is boolean

struct IsFinite : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T x) {
    if constexpr (std::is_floating_point_v<T>) return x - x == T(0);
    return true;
  }
  template <class E>
  static E traced(const E& x) {
    return is_finite(x);
  }
};

struct IsNan : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T x) {
    return not_a_number(x);
  }
  template <class E>
  static E traced(const E& x) {
    return not_equal(x, x);
  }
};

struct IsInf : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T x) {
    if constexpr (std::is_floating_point_v<T>) return (x == x) & (x - x != T(0));
    return false;
  }
  template <class E>
  static E traced(const E& x) {
    return equal(x, x) ^ is_finite(x);
  }
};

#define LOCKSTEP_PREDICATE_OPS(op) op(is_finite, IsFinite) op(is_nan, IsNan) op(is_inf, IsInf)

}  // namespace
}  // namespace lockstep
