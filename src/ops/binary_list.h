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
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
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
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
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
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V&, const V& b, const V&) {
    return dy * b;
  }
  template <class V>
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
  template <class V>
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
    return dy * (b * pow(a, b - 1));
  }
  template <class V>  // 0 where a is not positive, as TensorFlow's
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V&, const V& y) {
    return dy * (y * log(select(greater(a, 0), a, 1)));
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
    return ((a > b) | is_nan(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), dy, 0);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(greater_equal(a, b), 0, dy);
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
    return ((a < b) | is_nan(a)) ? a : b;
  }  // NaN if one is
  template <class V>
  LOCKSTEP_HD static V gradient_a(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), dy, 0);
  }
  template <class V>
  LOCKSTEP_HD static V gradient_b(const V& dy, const V& a, const V& b, const V&) {
    return select(less_equal(a, b), 0, dy);
  }
  template <class E>
  static E traced(const E& a, const E& b) {
    return minimum(a, b);
  }
};

#define LOCKSTEP_BINARY_OPS(op)                                                         \
  op(add, Add) op(sub, Sub) op(mul, Mul) op(div, Div) op(pow, Pow) op(maximum, Maximum) \
      op(minimum, Minimum)

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
