// SPDX-License-Identifier: Apache-2.0
#include "ops/update_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

[[gnu::always_inline]] inline float square_root(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double square_root(double x) { return __builtin_sqrt(x); }

template <class T>
void adam(T* __restrict weights, T* __restrict first, T* __restrict second,
          const T* __restrict gradient, std::int64_t n, const AdamFactors<T>& factors) {
  const AdamFactors<T> f = factors;
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * f.scale;
    const T m = first[i] + (g - first[i]) * f.one_minus_beta1;
    const T v = second[i] + (g * g - second[i]) * f.one_minus_beta2;
    first[i] = m;
    second[i] = v;
    weights[i] = (weights[i] - weights[i] * f.decay) - f.rate * m / (square_root(v) + f.epsilon);
  }
}

template <class T>
void sgd(T* __restrict weights, T* __restrict velocity, const T* __restrict gradient,
         std::int64_t n, const SgdFactors<T>& factors) {
  const SgdFactors<T> f = factors;
  if (!velocity) {
    for (std::int64_t i = 0; i < n; ++i)
      weights[i] = (weights[i] - weights[i] * f.decay) - f.rate * (gradient[i] * f.scale);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T change = f.rate * (gradient[i] * f.scale);
    const T v = f.momentum * velocity[i] - change;
    velocity[i] = v;
    weights[i] = (weights[i] - weights[i] * f.decay) + (f.nesterov ? f.momentum * v - change : v);
  }
}

// Element i goes to lane i mod kLanes; then halves of the lanes meet.
template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
#if defined(__AVX512F__)
  constexpr int kWidth = 8;
#elif defined(__AVX__)
  constexpr int kWidth = 4;
#else
  constexpr int kWidth = 2;
#endif
  constexpr int kLanes = 32;
  typedef double Doubles __attribute__((vector_size(kWidth * sizeof(double))));
  typedef T Elements __attribute__((vector_size(kWidth * sizeof(T))));
  Doubles sums[kLanes / kWidth] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes / kWidth; ++k) {
      Elements next;
      __builtin_memcpy(&next, x + i + k * kWidth, sizeof next);
      const Doubles wide = __builtin_convertvector(next, Doubles);
      sums[k] += wide * wide;
    }
  double lanes[kLanes];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (int k = 0; i < n; ++i, ++k)
    lanes[k] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

// x - x is 0, or NaN for what is not finite; blocks bound what is read after the first such
// element.
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 4096;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = n - begin < kBlock ? n : begin + kBlock;
    int bad = 0;
    for (std::int64_t i = begin; i < end; ++i) bad |= x[i] - x[i] != T(0);
    if (bad) return false;
  }
  return true;
}

template <class T>
constexpr UpdateKernels<T> kernels_of() {
  return {.adam = adam<T>,
          .sgd = sgd<T>,
          .sum_of_squares = sum_of_squares<T>,
          .all_finite = all_finite<T>};
}

}  // namespace

constinit const UpdateKernels<float> f32_update = kernels_of<float>();
constinit const UpdateKernels<double> f64_update = kernels_of<double>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
