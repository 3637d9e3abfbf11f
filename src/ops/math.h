// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#include "ops/cuda/math.cuh"
#else

// Scalar functions that compilers turn into vector code: no branches, no calls, no tables, and only
// + - * / sqrt and bit operations, so that every instruction set gives the same bits. Polynomials
// are minimax fits (Remez) of the remainder that the comment names. Accuracy is a few units in the
// last place of float (tests/ops/elementwise_test.cc). The double overloads are the C library's.
//
// Everything is in an anonymous namespace: each variant of an _isa.cc file has its own.
namespace lockstep {
namespace {
namespace math {

#define LOCKSTEP_MATH [[maybe_unused, gnu::always_inline]] inline

constexpr float kInfinity = __builtin_inff();
constexpr float kNaN = __builtin_nanf("");

LOCKSTEP_MATH std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
LOCKSTEP_MATH float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

LOCKSTEP_MATH float abs(float x) { return __builtin_fabsf(x); }
LOCKSTEP_MATH double abs(double x) { return __builtin_fabs(x); }
LOCKSTEP_MATH float sqrt(float x) { return __builtin_sqrtf(x); }
LOCKSTEP_MATH double sqrt(double x) { return __builtin_sqrt(x); }
LOCKSTEP_MATH float copysign(float size, float sign) { return __builtin_copysignf(size, sign); }
LOCKSTEP_MATH double copysign(double size, double sign) { return __builtin_copysign(size, sign); }
LOCKSTEP_MATH float floor(float x) { return __builtin_floorf(x); }
LOCKSTEP_MATH double floor(double x) { return __builtin_floor(x); }
LOCKSTEP_MATH float ceil(float x) { return __builtin_ceilf(x); }
LOCKSTEP_MATH double ceil(double x) { return __builtin_ceil(x); }
// To the nearest integer, halves to the even one.
LOCKSTEP_MATH float round(float x) { return __builtin_rintf(x); }
LOCKSTEP_MATH double round(double x) { return __builtin_rint(x); }

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| below 2^21 ln 2.
struct ExpParts {
  std::uint32_t n;  // two's complement
  float r;
};

// 1.5 * 2^23: adding it leaves the nearest integer in the low bits
constexpr float kRound = 12582912.0f;
LOCKSTEP_MATH ExpParts split_exponent(float x) {
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  return {bits_of(shifted) - bits_of(kRound), (x - n * 0.693359375f) + n * 2.12194440e-4f};
}

LOCKSTEP_MATH float power_of_two(std::uint32_t n) { return float_of((n + 127u) << 23); }

// e^r for |r| <= ln 2 / 2.
LOCKSTEP_MATH float exp_near_zero(float r) {
  // (e^r - 1 - r) / r^2
  float p = 0.001395172028f;
  p = p * r + 0.00836959819f;
  p = p * r + 0.04166618724f;
  p = p * r + 0.1666651289f;
  p = p * r + 0.5000000101f;
  return 1.0f + (r + r * r * p);
}

LOCKSTEP_MATH float exp(float x) {
  const float inside = x < -105.0f ? -105.0f : x > 89.0f ? 89.0f : x;  // NaN passes
  const auto [n, r] = split_exponent(inside);
  const float mantissa = exp_near_zero(r);
  // In two steps, as 2^n itself may be outside the normal numbers.
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  return mantissa * power_of_two(half) * power_of_two(n - half);
}
LOCKSTEP_MATH double exp(double x) { return __builtin_exp(x); }

// exp(-size) for size >= 0, with the same bits: nothing overflows, which takes fewer steps.
LOCKSTEP_MATH float exp_minus(float size) {
  const float inside = size > 105.0f ? 105.0f : size;
  const float shifted = inside * -1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = n * 2.12194440e-4f - (inside + n * 0.693359375f);
  return exp_near_zero(r) * power_of_two(bits_of(shifted) - bits_of(kRound) + 64u) * 0x1p-64f;
}
LOCKSTEP_MATH double exp_minus(double size) { return __builtin_exp(-size); }

LOCKSTEP_MATH float expm1(float x) {
  const float inside = x < -18.0f ? -18.0f : x > 89.0f ? 89.0f : x;
  const auto [n, r] = split_exponent(inside);
  // (e^r - 1 - r) / r^2, weighted for small r
  float p = 0.0001991559507f;
  p = p * r + 0.001394200675f;
  p = p * r + 0.008333270684f;
  p = p * r + 0.04166634279f;
  p = p * r + 0.1666666683f;
  p = p * r + 0.5000000049f;
  const float q = r + r * r * p;
  // 2^n (q + 1) - 1 from half of it, as 2^n may overflow where the result does not.
  const float half = power_of_two(n - 1u);
  const float result = 2.0f * (half * q + (half - 0.5f));
  return x == 0.0f ? x : result;
}
LOCKSTEP_MATH double expm1(double x) { return __builtin_expm1(x); }

LOCKSTEP_MATH float log(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const std::uint32_t bits = bits_of(subnormal ? x * 8388608.0f : x);
  // x = m 2^e with sqrt(1/2) <= m < sqrt(2)
  const std::int32_t e = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = float_of(bits - (static_cast<std::uint32_t>(e) << 23)) - 1.0f;
  const float exponent = static_cast<float>(e) - (subnormal ? 23.0f : 0.0f);
  // (log(1 + f) - f + f^2 / 2) / f^3, even and odd terms apart
  const float square = f * f;
  float even = 0.1288138939f;
  even = even * square + 0.1418121622f;
  even = even * square + 0.2000228588f;
  even = even * square + 0.3333331673f;
  float odd = -0.07860190424f;
  odd = odd * square + -0.1312840339f;
  odd = odd * square + -0.1662459648f;
  odd = odd * square + -0.2500080899f;
  const float p = even + f * odd;
  float low = f * square * p + exponent * -2.12194440e-4f;
  low = low - 0.5f * square;
  const float result = (low + f) + exponent * 0.693359375f;
  return x > 0.0f ? (x < kInfinity ? result : x) : (x == 0.0f ? -kInfinity : kNaN);
}
LOCKSTEP_MATH double log(double x) { return __builtin_log(x); }

LOCKSTEP_MATH float log1p(float x) {
  const float u = 1.0f + x;
  const float rounding = (x - (u - 1.0f)) / u;
  const float result = log(u) + rounding;
  return x == 0.0f || u == kInfinity ? x : (u == 0.0f ? -kInfinity : result);
}
LOCKSTEP_MATH double log1p(double x) { return __builtin_log1p(x); }

// log(1 + exp(-size)) for size >= 0. The special cases of log1p do not occur, and with them compilers
// would not make vector code of this.
LOCKSTEP_MATH float log1p_exp_minus(float size) {
  const float e = exp_minus(size);
  const float u = 1.0f + e;
  const float rounding = e - (u - 1.0f);
  return log(u) + rounding * (1.5f - 0.5f * u);  // which is nearly 1 / u
}
LOCKSTEP_MATH double log1p_exp_minus(double size) { return __builtin_log1p(__builtin_exp(-size)); }

LOCKSTEP_MATH float tanh(float x) {
  const float size = abs(x);
  const float e = expm1(2.0f * (size > 9.25f ? 9.25f : size));
  return copysign(e / (e + 2.0f), x);
}
LOCKSTEP_MATH double tanh(double x) { return __builtin_tanh(x); }

template <class T>
LOCKSTEP_MATH T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// -log(erfc(x)) for 0 <= x <= 4, as x times a polynomial; even and odd terms apart, which shortens the
// chain of operations that wait for each other.
LOCKSTEP_MATH float minus_log_erfc(float x) {
  const float z = x * x;
  float even = -9.785463546e-8f;
  even = even * z + -2.87413043e-5f;
  even = even * z + -0.0007779040677f;
  even = even * z + -0.0002753758412f;
  even = even * z + 0.1027701382f;
  even = even * z + 1.128379166f;
  float odd = 2.524807275e-6f;
  odd = odd * z + 0.0001892559426f;
  odd = odd * z + 0.001837099309f;
  odd = odd * z + -0.01911045128f;
  odd = odd * z + 0.6366199006f;
  return x * (even + x * odd);
}

LOCKSTEP_MATH float erf(float x) {
  const float size = abs(x);
  return copysign(-expm1(-minus_log_erfc(size > 4.0f ? 4.0f : size)), x);
}
LOCKSTEP_MATH double erf(double x) { return __builtin_erf(x); }

// The normal distribution function, (1 + erf(x / sqrt 2)) / 2, and exp(-x^2 / 2), which it is made of.
template <class T>
struct Normal {
  T cdf, bell;
};
// Both the bell and the tail's share of it are quotients of short polynomials, which do not wait for
// each other and need one division.
LOCKSTEP_MATH Normal<float> normal(float x) {
  const float size = abs(x) > 14.5f ? 14.5f : abs(x);  // where both are 0; NaN passes
  // -x^2 = n 2 ln 2 + w
  const float square = size * size;
  const float shifted = square * -0.72134752f + kRound;
  const float n = shifted - kRound;
  const float w = n * 4.24388880e-4f - (square + n * 1.38671875f);
  // exp(w / 2) = (even + odd) / (even - odd) for |w| <= ln 2, as odd / even is tanh(w / 4)
  const float z = w * w;
  const float even = 961.4488288f + 24.03015358f * z, odd = w * (240.3622068f + z);
  // exp(x^2 / 2) times the tail is p / q. 2^n may be below the normal numbers: it is kept 2^64 times
  // as large, and p that much smaller.
  constexpr float kScale = 0x1p-64f;
  float p = 0.3989469104f * kScale;
  p = p * size + 3.938116467f * kScale;
  p = p * size + 17.75890237f * kScale;
  p = p * size + 42.4789653f * kScale;
  p = p * size + 48.45935348f * kScale;
  float q = size + 9.872018933f;
  q = q * size + 45.50045949f;
  q = q * size + 116.5450057f;
  q = q * size + 162.2879108f;
  q = q * size + 96.91870638f;
  const float power = power_of_two(bits_of(shifted) - bits_of(kRound) + 64u);
  const float share = (even + odd) * power / (q * (even - odd));
  const float tail = p * share;
  return {x < 0.0f ? tail : 1.0f - tail, q * share * kScale};
}
LOCKSTEP_MATH Normal<double> normal(double x) {
  return {0.5 * __builtin_erfc(x * -0.70710678118654752440), __builtin_exp(-0.5 * x * x)};
}

// sin and cos of r for |r| <= pi / 4.
LOCKSTEP_MATH float sin_near_zero(float r) {
  const float z = r * r;
  // (sin(r) / r - 1) / r^2
  float p = -0.0001951604133f;
  p = p * z + 0.008332169198f;
  p = p * z + -0.1666665481f;
  return r + r * z * p;
}
LOCKSTEP_MATH float cos_near_zero(float r) {
  const float z = r * r;
  // (cos(r) - 1 + r^2 / 2) / r^4
  float p = 2.443710907e-5f;
  p = p * z + -0.001388735639f;
  p = p * z + 0.04166664665f;
  return 1.0f - 0.5f * z + z * z * p;
}

// x = quadrant pi / 2 + r with |r| <= pi / 4, for |x| up to kTrigonometricLimit.
struct Turns {
  std::int32_t quadrant;
  float r;
};
constexpr float kTrigonometricLimit = 1048576.0f;
LOCKSTEP_MATH Turns split_turns(float x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double wide = static_cast<double>(x);
  const double n = (wide * 0.63661977236758134308 + kRound) - kRound;
  // pi / 2 in two parts, of which n times the first is exact.
  return {static_cast<std::int32_t>(n),
          static_cast<float>((wide - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11)};
}

// sin(x + quarter_turns pi / 2).
LOCKSTEP_MATH float sin_of(float x, std::int32_t quarter_turns) {
  const auto [turns, r] = split_turns(x);
  const std::int32_t quadrant = turns + quarter_turns;
  const float s = sin_near_zero(r);
  const float c = cos_near_zero(r);
  const float picked = (quadrant & 1) != 0 ? c : s;
  return (quadrant & 2) != 0 ? -picked : picked;
}

LOCKSTEP_MATH float sin(float x) { return sin_of(x, 0); }
LOCKSTEP_MATH double sin(double x) { return __builtin_sin(x); }
LOCKSTEP_MATH float cos(float x) { return sin_of(x, 1); }
LOCKSTEP_MATH double cos(double x) { return __builtin_cos(x); }

LOCKSTEP_MATH float tan(float x) {
  const auto [quadrant, r] = split_turns(x);
  const float s = sin_near_zero(r);
  const float c = cos_near_zero(r);
  const bool odd = (quadrant & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}
LOCKSTEP_MATH double tan(double x) { return __builtin_tan(x); }

LOCKSTEP_MATH float atan(float x) {
  const float size = abs(x);
  const bool steep = size > 1.0f;
  const float r = steep ? 1.0f / size : size;
  // (atan(r) / r - 1) / r^2 for 0 <= r <= 1; even and odd terms apart
  const float z = r * r, u = z * z;
  float even = -0.001793559366f;
  even = even * u + -0.03117723826f;
  even = even * u + -0.08403406974f;
  even = even * u + -0.1426423797f;
  even = even * u + -0.3333329907f;
  float odd = 0.01091430532f;
  odd = odd * u + 0.05795692504f;
  odd = odd * u + 0.1095216902f;
  odd = odd * u + 0.1999854786f;
  const float angle = r + r * z * (even + z * odd);
  return copysign(steep ? (1.57079637f - angle) + -4.37113883e-8f : angle, x);
}
LOCKSTEP_MATH double atan(double x) { return __builtin_atan(x); }

// The remainder of the sign of y, exact, by the C library, and therefore slow.
template <class T>
LOCKSTEP_MATH T floor_mod_far(T x, T y) {
  const T rest = static_cast<T>(__builtin_fmod(x, y));
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
}
// x - y floor(x / y). Quotients of floats below 2^28 are exact in double as far as floor sees, and so
// are the product and the difference.
constexpr double kQuotientLimit = 268435456.0;
LOCKSTEP_MATH float floor_mod(float x, float y) {
  const double wide_x = static_cast<double>(x), wide_y = static_cast<double>(y);
  const auto rest = static_cast<float>(wide_x - wide_y * floor(wide_x / wide_y));
  return rest == 0.0f ? copysign(0.0f, x) : rest;
}
LOCKSTEP_MATH double floor_mod(double x, double y) { return floor_mod_far(x, y); }
LOCKSTEP_MATH bool floor_mod_is_far(float x, float y) {
  const double quotient = static_cast<double>(x) / static_cast<double>(y);
  const int inexact = abs(quotient) < kQuotientLimit ? 0 : 1, endless = abs(y) == kInfinity ? 1 : 0;
  return (inexact | endless) != 0;
}

// log2(x) of x > 0, infinity included, to 40 bits.
LOCKSTEP_MATH double log2_wide(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const std::uint32_t bits = bits_of(subnormal ? x * 8388608.0f : x);
  // x = m 2^e with sqrt(1/2) <= m < sqrt(2)
  const std::int32_t e = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  const double m = static_cast<double>(float_of(bits - (static_cast<std::uint32_t>(e) << 23)));
  const double exponent = static_cast<double>(e) - (subnormal ? 23.0 : 0.0);
  // log2((1 + s) / (1 - s)) / s
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 0.340760558042772989;
  p = p * z + 0.411670668961330365;
  p = p * z + 0.577083630979280185;
  p = p * z + 0.961796672959036496;
  p = p * z + 2.8853900817909768;
  const double result = exponent + s * p;
  return x < kInfinity ? result : static_cast<double>(kInfinity);
}

// 2^t, to 28 bits and rounded once.
LOCKSTEP_MATH float exp2_narrow(double t) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double inside = t < -160.0 ? -160.0 : t > 160.0 ? 160.0 : t;
  const double shifted = inside + kRound;
  const double r = inside - (shifted - kRound);
  // (2^r - 1) / r for |r| <= 1/2
  double p = 1.55946797689148487e-4;
  p = p * r + 0.001340664437336891;
  p = p * r + 0.00961769297249995775;
  p = p * r + 0.0555031054954154841;
  p = p * r + 0.240226527828325502;
  p = p * r + 0.693147214968987199;
  const auto power = (__builtin_bit_cast(std::uint64_t, shifted) + 1023u) << 52;
  return static_cast<float>((1.0 + r * p) * __builtin_bit_cast(double, power));
}

// As C's: 1 where x is 1 or y is 0; NaN for a negative x unless y is whole.
LOCKSTEP_MATH float pow(float x, float y) {
  const float size = abs(x);
  const float magnitude = size == 0.0f ? (y < 0.0f ? kInfinity : 0.0f)
                                       : exp2_narrow(static_cast<double>(y) * log2_wide(size));
  const bool whole = round(y) == y;
  const bool odd = whole & (round(0.5f * y) != 0.5f * y);
  const bool negative = (bits_of(x) >> 31) != 0;
  const bool flips = negative & odd;
  const float powered = flips ? -magnitude : magnitude;
  const bool undefined =
      (x != x) | (y != y) | (negative & (size != 0.0f) & (size < kInfinity) & !whole);
  const float result = size == 1.0f ? (flips ? -1.0f : 1.0f) : powered;
  const bool one = (y == 0.0f) | (x == 1.0f);
  return one ? 1.0f : undefined ? kNaN : result;
}
LOCKSTEP_MATH double pow(double x, double y) { return __builtin_pow(x, y); }

}  // namespace math
}  // namespace
}  // namespace lockstep

#endif
