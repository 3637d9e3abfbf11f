// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/functor.h"

// Elementwise ops of two tensors, and comparisons; see functor.h.
namespace lockstep {
namespace {

struct Add : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kNothing, kGradientBKeeps = kNothing;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) + Wrapped<T>(b));
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a + b;
  }
};

struct Sub : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kNothing, kGradientBKeeps = kNothing;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) - Wrapped<T>(b));
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V&, const V&, const V&) {
    return -dy;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a - b;
  }
};

struct Mul : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kB, kGradientBKeeps = kA;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return static_cast<T>(Wrapped<T>(a) * Wrapped<T>(b));
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return dy * b;
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V&, const V&) {
    return dy * a;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a * b;
  }
};

struct Div : OnFloats {
  static constexpr unsigned kGradientAKeeps = kB, kGradientBKeeps = kB | kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return a / b;
  }
  template <AsOps V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return dy / b;
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V&, const V& b, const V& y) {
    return -(dy * y) / b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a / b;
  }
};

struct Pow : OnFloats {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kResult;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return math::pow(a, b);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    using math::pow;
    return dy * (b * pow(a, b - Number<V>(1)));
  }
  template <class V>  // 0 where a is not positive, as TensorFlow's
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V&, const V& y) {
    using math::log;
    return dy * (y * log(select(greater(a, Number<V>(0)), a, Number<V>(1))));
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return pow(a, b);
  }
};

struct Maximum : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return ((a > b) | not_a_number(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), dy, Number<V>(0));
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), Number<V>(0), dy);
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return maximum(a, b);
  }
};

struct Minimum : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    return ((a < b) | not_a_number(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), dy, Number<V>(0));
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), Number<V>(0), dy);
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return minimum(a, b);
  }
};

template <Scalar T>
LOCKSTEP_SCALAR T minimum(T a, T b) {
  return Minimum::forward(a, b);
}

// a - b floor(a / b), of the sign of b. Of integers 0 where b is 0, as NumPy's.
struct Mod : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kNothing, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return math::floor_mod(a, b);
    } else {
      if (b == T(0)) return T(0);
      if (std::is_signed_v<T> && b == T(-1)) return T(0);  // the quotient may overflow
      const T rest = static_cast<T>(a % b);
      if (std::is_signed_v<T> && rest != T(0) && (rest < T(0)) != (b < T(0)))
        return static_cast<T>(rest + b);
      return rest;
    }
  }
#if !defined(__CUDACC__)
  static bool is_far(float a, float b) { return math::floor_mod_is_far(a, b); }
  static float far(float a, float b) { return math::floor_mod_far(a, b); }
#endif
  template <AsOps V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  // In f32 at least: rounded to 16 bits a quotient may be the next whole number.
  template <AsOps V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return narrowed(-(widened(dy) * floor(widened(a) / widened(b))), dy.dtype());
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return floor_mod(a, b);
  }
};

struct SquaredDifference : OnNumbers {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    const auto difference = static_cast<Wrapped<T>>(Wrapped<T>(a) - Wrapped<T>(b));
    return static_cast<T>(difference * difference);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return dy * (Number<V>(2) * (a - b));
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return dy * (Number<V>(2) * (b - a));
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    const E difference = a - b;
    return difference * difference;
  }
};

// a where it is positive, else a b.
struct LeakyRelu : OnFloats {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    const T below = a * b;
    return a > T(0) ? a : below;
  }
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(greater(a, Number<V>(0)), dy, dy * b);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V&, const V&) {
    return dy * minimum(a, Number<V>(0));
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return select(a > 0, a, a * b);
  }
};

// The angle of the point (b, a), as C's: in [-pi, pi], by the quadrant that the signs say.
struct Atan2 : OnFloats {
  static constexpr unsigned kGradientAKeeps = kA | kB, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    constexpr double kPi = 3.14159265358979323846;
    const T y = math::abs(a), x = math::abs(b);
    const bool steep = y > x;
    const T large = steep ? y : x, small = steep ? x : y;
    // 0 of the origin; 1 of two infinities; NaN stays NaN.
    const T quotient = small == large ? T(1) : small / large;
    const T angle = math::atan(large == T(0) ? small : quotient);
    const T acute = steep ? T(kPi / 2) - angle : angle;
    return math::copysign(math::copysign(T(1), b) < T(0) ? T(kPi) - acute : acute, a);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return dy * (b / (a * a + b * b));
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return -(dy * (a / (a * a + b * b)));
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return atan2(a, b);
  }
};

// Of labels a and logits b: -a log(sigmoid(b)) - (1 - a) log(sigmoid(-b)), so computed that nothing
// overflows and a small loss is not rounded to 0.
struct SigmoidCrossEntropy : OnFloats {
  static constexpr unsigned kGradientAKeeps = kB, kGradientBKeeps = kA | kB;
  template <class T>
  LOCKSTEP_HD static T forward(T a, T b) {
    const T above = b < T(0) ? T(0) : b;
    return (above - a * b) + math::log1p_exp_minus(math::abs(b));
  }
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return -(dy * b);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    using math::sigmoid;
    return dy * (sigmoid(b) - a);
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return (maximum(b, 0) - a * b) + log1p(exp(-abs(b)));
  }
};

// Those that broadcast and have the name of a function; others are called by theirs (softmax.cc).
#define LOCKSTEP_BROADCASTING_OPS(op)                                                   \
  op(add, Add) op(sub, Sub) op(mul, Mul) op(div, Div) op(pow, Pow) op(maximum, Maximum) \
      op(minimum, Minimum) op(mod, Mod) op(squared_difference, SquaredDifference)       \
          op(leaky_relu, LeakyRelu) op(atan2, Atan2)
#define LOCKSTEP_BINARY_OPS(op) \
  LOCKSTEP_BROADCASTING_OPS(op) op(sigmoid_cross_entropy, SigmoidCrossEntropy)

// ---- comparisons, of every dtype; the result is boolean ----------------------------------------

struct Equal : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a == b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return equal(a, b);
  }
};
struct NotEqual : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a != b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return not_equal(a, b);
  }
};
struct Less : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a < b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a < b;
  }
};
struct LessEqual : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a <= b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a <= b;
  }
};
struct Greater : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a > b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a > b;
  }
};
struct GreaterEqual : OnNumbers {
  template <class T>
  LOCKSTEP_HD static bool forward(T a, T b) {
    return a >= b;
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return a >= b;
  }
};

#define LOCKSTEP_COMPARE_OPS(op)                                                    \
  op(equal, Equal) op(not_equal, NotEqual) op(less, Less) op(less_equal, LessEqual) \
      op(greater, Greater) op(greater_equal, GreaterEqual)

}  // namespace
}  // namespace lockstep
