// SPDX-License-Identifier: Apache-2.0
#pragma once

// What math.h is to the CPU: the scalar functions that elementwise functors use, here CUDA's own,
// which are within two units in the last place.
namespace lockstep {
namespace {
namespace math {

#define LOCKSTEP_MATH [[maybe_unused]] __host__ __device__ inline

LOCKSTEP_MATH float abs(float x) { return ::fabsf(x); }
LOCKSTEP_MATH double abs(double x) { return ::fabs(x); }
LOCKSTEP_MATH float sqrt(float x) { return ::sqrtf(x); }
LOCKSTEP_MATH double sqrt(double x) { return ::sqrt(x); }
LOCKSTEP_MATH float copysign(float size, float sign) { return ::copysignf(size, sign); }
LOCKSTEP_MATH double copysign(double size, double sign) { return ::copysign(size, sign); }
LOCKSTEP_MATH float floor(float x) { return ::floorf(x); }
LOCKSTEP_MATH double floor(double x) { return ::floor(x); }
LOCKSTEP_MATH float ceil(float x) { return ::ceilf(x); }
LOCKSTEP_MATH double ceil(double x) { return ::ceil(x); }
LOCKSTEP_MATH float round(float x) { return ::rintf(x); }
LOCKSTEP_MATH double round(double x) { return ::rint(x); }
LOCKSTEP_MATH float exp(float x) { return ::expf(x); }
LOCKSTEP_MATH double exp(double x) { return ::exp(x); }
LOCKSTEP_MATH float expm1(float x) { return ::expm1f(x); }
LOCKSTEP_MATH double expm1(double x) { return ::expm1(x); }
LOCKSTEP_MATH float log(float x) { return ::logf(x); }
LOCKSTEP_MATH double log(double x) { return ::log(x); }
LOCKSTEP_MATH float log1p(float x) { return ::log1pf(x); }
LOCKSTEP_MATH double log1p(double x) { return ::log1p(x); }
LOCKSTEP_MATH float tanh(float x) { return ::tanhf(x); }
LOCKSTEP_MATH double tanh(double x) { return ::tanh(x); }
LOCKSTEP_MATH float erf(float x) { return ::erff(x); }
LOCKSTEP_MATH double erf(double x) { return ::erf(x); }
LOCKSTEP_MATH float sin(float x) { return ::sinf(x); }
LOCKSTEP_MATH double sin(double x) { return ::sin(x); }
LOCKSTEP_MATH float cos(float x) { return ::cosf(x); }
LOCKSTEP_MATH double cos(double x) { return ::cos(x); }
LOCKSTEP_MATH float tan(float x) { return ::tanf(x); }
LOCKSTEP_MATH double tan(double x) { return ::tan(x); }
LOCKSTEP_MATH float atan(float x) { return ::atanf(x); }
LOCKSTEP_MATH double atan(double x) { return ::atan(x); }
LOCKSTEP_MATH float pow(float x, float y) { return ::powf(x, y); }
LOCKSTEP_MATH double pow(double x, double y) { return ::pow(x, y); }

template <class T>
LOCKSTEP_MATH T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <class T>
LOCKSTEP_MATH T exp_minus(T size) {
  return exp(-size);
}
template <class T>
LOCKSTEP_MATH T log1p_exp_minus(T size) {
  return log1p(exp(-size));
}

// x - y floor(x / y), of the sign of y.
template <class T>
LOCKSTEP_MATH T floor_mod(T x, T y) {
  const T rest = static_cast<T>(::fmod(x, y));
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
}

// The normal distribution function and exp(-x^2 / 2).
template <class T>
struct Normal {
  T cdf, bell;
};
LOCKSTEP_MATH Normal<float> normal(float x) {
  return {0.5f * ::erfcf(x * -0.707106781f), ::expf(-0.5f * x * x)};
}
LOCKSTEP_MATH Normal<double> normal(double x) {
  return {0.5 * ::erfc(x * -0.70710678118654752440), ::exp(-0.5 * x * x)};
}

}  // namespace math
}  // namespace
}  // namespace lockstep
