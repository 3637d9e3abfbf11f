// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/math.h"

// Every elementwise op, one functor each. To add one: its functor, its line in the list at the end
// of its section, its declaration in lockstep/ops/elementwise.h or compare.h, and a row in
// tests/ops/elementwise_test.cc.
//
// A functor says
//   supports<T>         for which element types kernels are built (f16 and bf16 come with float)
//   forward(x...)       the value of one element
//   derivative(v)       unary: dy/dx from what kKeeps names, the argument or the result; an op that
//                       has none is constant almost everywhere and no gradient flows through it
//   gradient_a, _b      binary: the gradient of each argument, before it is summed to its shape,
//   from
//                       what kGradientAKeeps, _B name; undefined tensors stand for the rest
// Derivatives are written once for scalars, from which fused gradient kernels are made, and for
// tensors, which gradients of gradients use: V is float, double or Tensor, and Number<V> what
// stands beside it.
namespace lockstep {
namespace {

enum Keeps : unsigned { kNothing = 0, kArgument = 1, kResult = 2, kA = 4, kB = 8 };

template <class V>
using Number = std::conditional_t<std::is_arithmetic_v<V>, V, double>;

struct OnFloats {
  template <class T>
  static constexpr bool supports = std::is_floating_point_v<T>;
  static constexpr const char* kDTypes = "a floating dtype (f32, f64, f16, bf16)";
};
struct OnSigned {
  template <class T>
  static constexpr bool supports = std::is_signed_v<T>;
  static constexpr const char* kDTypes = "a floating dtype, i32 or i64";
};
struct OnNumbers {
  template <class T>
  static constexpr bool supports = true;
  static constexpr const char* kDTypes = "a floating or integer dtype";
};

// Integers wrap around: computed unsigned, where that is defined.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
};
template <class T>
using Wrapped = typename Wrapping<T>::type;

template <class T>
[[maybe_unused, gnu::always_inline]] inline bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// ---- unary -----------------------------------------------------------------------------------

struct Neg : OnSigned {
  static constexpr Keeps kKeeps = kNothing;
  template <class T>
  static T forward(T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(Wrapped<T>(0) - Wrapped<T>(x));
    return -x;
  }
  template <class V>
  static auto derivative(const V&) {
    return Number<V>(-1);
  }
};

struct Sign : OnSigned {
  template <class T>
  static T forward(T x) {  // NaN stays NaN
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
  }
};

struct Abs : OnSigned {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    if constexpr (std::is_floating_point_v<T>) return math::abs(x);
    return x < T(0) ? static_cast<T>(Wrapped<T>(0) - Wrapped<T>(x)) : x;
  }
  template <class V>
  static V derivative(const V& x) {
    if constexpr (std::is_arithmetic_v<V>)
      return Sign::forward(x);
    else
      return sign(x);
  }
};

struct Sqrt : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return math::sqrt(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return Number<V>(0.5) / y;
  }
};

struct Rsqrt : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return T(1) / math::sqrt(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return Number<V>(-0.5) * y * y * y;
  }
};

struct Exp : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return math::exp(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return y;
  }
};

struct Expm1 : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return math::expm1(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return y + Number<V>(1);
  }
};

struct Log : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return math::log(x);
  }
  template <class V>
  static V derivative(const V& x) {
    return Number<V>(1) / x;
  }
};

struct Log1p : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return math::log1p(x);
  }
  template <class V>
  static V derivative(const V& x) {
    return Number<V>(1) / (x + Number<V>(1));
  }
};

struct Tanh : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return math::tanh(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return Number<V>(1) - y * y;
  }
};

struct Sigmoid : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return math::sigmoid(x);
  }
  template <class V>
  static V derivative(const V& y) {
    return y * (Number<V>(1) - y);
  }
};

struct Erf : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return math::erf(x);
  }
  template <class V>
  static V derivative(const V& x) {
    using math::exp;  // 2 / sqrt(pi) exp(-x^2)
    return Number<V>(1.12837916709551257390) * exp(-(x * x));
  }
};

// x times the normal distribution function of x.
struct Gelu : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return x * math::normal(x).cdf;
  }
  template <class V>
  static V derivative(const V& x) {
    constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    if constexpr (std::is_arithmetic_v<V>) {
      const math::Normal<V> at = math::normal(x);
      return at.cdf + x * (V(kDensity) * at.bell);
    } else {
      const V cdf = 0.5 * (1 + erf(0.70710678118654752440 * x));
      return cdf + x * (kDensity * exp(-0.5 * square(x)));
    }
  }
};

struct Relu : OnSigned {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return x < T(0) ? T(0) : x;
  }  // NaN stays NaN
  template <class V>
  static V derivative(const V& y) {
    if constexpr (std::is_arithmetic_v<V>)
      return y > V(0) ? V(1) : V(0);
    else
      return sign(y);
  }
};

struct Square : OnNumbers {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return static_cast<T>(Wrapped<T>(x) * Wrapped<T>(x));
  }
  template <class V>
  static V derivative(const V& x) {
    return Number<V>(2) * x;
  }
};

struct Reciprocal : OnFloats {
  static constexpr Keeps kKeeps = kResult;
  template <class T>
  static T forward(T x) {
    return T(1) / x;
  }
  template <class V>
  static V derivative(const V& y) {
    return -(y * y);
  }
};

struct Floor : OnFloats {
  template <class T>
  static T forward(T x) {
    return math::floor(x);
  }
};

struct Ceil : OnFloats {
  template <class T>
  static T forward(T x) {
    return math::ceil(x);
  }
};

struct Round : OnFloats {
  template <class T>
  static T forward(T x) {
    return math::round(x);
  }
};

// The vector code of float reaches to kTrigonometricLimit; beyond it the loop calls `far`.
struct Sin : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return math::sin(x);
  }
  static float far(float x) { return static_cast<float>(__builtin_sin(static_cast<double>(x))); }
  template <class V>
  static V derivative(const V& x) {
    using math::cos;
    return cos(x);
  }
};

struct Cos : OnFloats {
  static constexpr Keeps kKeeps = kArgument;
  template <class T>
  static T forward(T x) {
    return math::cos(x);
  }
  static float far(float x) { return static_cast<float>(__builtin_cos(static_cast<double>(x))); }
  template <class V>
  static V derivative(const V& x) {
    using math::sin;
    return -sin(x);
  }
};

#define LOCKSTEP_UNARY_OPS(op)                                                                     \
  op(neg, Neg) op(sign, Sign) op(abs, Abs) op(sqrt, Sqrt) op(rsqrt, Rsqrt) op(exp, Exp)            \
      op(expm1, Expm1) op(log, Log) op(log1p, Log1p) op(tanh, Tanh) op(sigmoid, Sigmoid)           \
          op(erf, Erf) op(gelu, Gelu) op(relu, Relu) op(square, Square) op(reciprocal, Reciprocal) \
              op(floor, Floor) op(ceil, Ceil) op(round, Round) op(sin, Sin) op(cos, Cos)

// ---- binary ----------------------------------------------------------------------------------

struct Add : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kNothing, kGradientBKeeps = kNothing;
  template <class T>
  static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) + Wrapped<T>(b));
  }
  template <class V>
  static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V gradient_b(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
};

struct Sub : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kNothing, kGradientBKeeps = kNothing;
  template <class T>
  static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) - Wrapped<T>(b));
  }
  template <class V>
  static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V gradient_b(const V& dy, const V&, const V&, const V&) {
    return -dy;
  }
};

struct Mul : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kB, kGradientBKeeps = kA;
  template <class T>
  static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) * Wrapped<T>(b));
  }
  template <class V>
  static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return dy * b;
  }
  template <class V>
  static V gradient_b(const V& dy, const V& a, const V&, const V&) {
    return dy * a;
  }
};

struct Div : OnFloats {
  static constexpr unsigned kGradientAKeeps = kB, kGradientBKeeps = kB | kResult;
  template <class T>
  static T forward(T a, T b) {
    return a / b;
  }
  template <class V>
  static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return dy / b;
  }
  template <class V>
  static V gradient_b(const V& dy, const V&, const V& b, const V& y) {
    return -(dy * y) / b;
  }
};

struct Pow : OnFloats {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kResult;
  template <class T>
  static T forward(T a, T b) {
    return math::pow(a, b);
  }
  template <class V>
  static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return dy * (b * pow(a, b - 1));
  }
  template <class V>  // 0 where a is not positive, as TensorFlow's
  static V gradient_b(const V& dy, const V& a, const V&, const V& y) {
    return dy * (y * log(select(greater(a, 0), a, 1)));
  }
};

struct Maximum : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  static T forward(T a, T b) {
    return ((a > b) | is_nan(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), dy, 0);
  }
  template <class V>
  static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), 0, dy);
  }
};

struct Minimum : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  static T forward(T a, T b) {
    return ((a < b) | is_nan(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), dy, 0);
  }
  template <class V>
  static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), 0, dy);
  }
};

#define LOCKSTEP_BINARY_OPS(op)                                                         \
  op(add, Add) op(sub, Sub) op(mul, Mul) op(div, Div) op(pow, Pow) op(maximum, Maximum) \
      op(minimum, Minimum)

// ---- comparisons, of every dtype; the result is boolean ----------------------------------------

struct Equal : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a == b;
  }
};
struct NotEqual : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a != b;
  }
};
struct Less : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a < b;
  }
};
struct LessEqual : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a <= b;
  }
};
struct Greater : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual : OnNumbers {
  template <class T>
  static bool forward(T a, T b) {
    return a >= b;
  }
};

#define LOCKSTEP_COMPARE_OPS(op)                                                    \
  op(equal, Equal) op(not_equal, NotEqual) op(less, Less) op(less_equal, LessEqual) \
      op(greater, Greater) op(greater_equal, GreaterEqual)

}  // namespace
}  // namespace lockstep
