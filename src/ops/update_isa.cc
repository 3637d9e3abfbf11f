// SPDX-License-Identifier: Apache-2.0
#include "ops/update_kernels.h"

#include <utility>

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

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

template <class Rule, class T>
Values<T, Rule::kScalars> scalars_of(const T* scalars) {
  Values<T, Rule::kScalars> result;
  for (int k = 0; k < Rule::kScalars; ++k) result.of[k] = scalars[2 + k];
  return result;
}

template <class Rule, class T, class... Slots>
void update_elements(const T* scalars, const T* __restrict gradient, std::int64_t n,
                     T* __restrict weights, Slots* __restrict... slots) {
  const T scale = scalars[0], decay = scalars[1];
  const auto s = scalars_of<Rule>(scalars);
  for (std::int64_t i = 0; i < n; ++i) {
    const T w = weights[i];
    const Values<T, 1 + Rule::kSlots> next =
        Rule::template element<T>(s, gradient[i] * scale, {{w - w * decay, slots[i]...}});
    int k = 0;
    weights[i] = next.of[k];
    ((slots[i] = next.of[++k]), ...);
  }
}

template <class Rule, class T>
void update(T* const* state, const T* gradient, std::int64_t n, const T* scalars) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    update_elements<Rule, T>(scalars, gradient, n, state[0], state[1 + k]...);
  }(std::make_index_sequence<Rule::kSlots>());
}

template <class Rule, class T, class... Slots>
void measure_elements(const T* scalars, const T* __restrict gradient, std::int64_t n,
                      T* __restrict first, T* __restrict second, const T* __restrict weights,
                      const Slots* __restrict... slots) {
  const T scale = scalars[0], decay = scalars[1];
  const auto s = scalars_of<Rule>(scalars);
  for (std::int64_t i = 0; i < n; ++i) {
    const T w = weights[i];
    const Values<T, 2> values =
        Rule::template measured<T>(s, gradient[i] * scale, {{w - w * decay, slots[i]...}});
    first[i] = values.of[0];
    second[i] = values.of[1];
  }
}

template <class Rule, class T>
void measure(const T* const* state, const T* gradient, std::int64_t n, const T* scalars,
             double (&squares)[2]) {
  constexpr std::int64_t kBlock = 512;
  T first[kBlock], second[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      measure_elements<Rule, T>(scalars, gradient + i, count, first, second, state[0] + i,
                                state[1 + k] + i...);
    }(std::make_index_sequence<Rule::kSlots>());
    squares[0] += sum_of_squares(first, count);
    squares[1] += sum_of_squares(second, count);
  }
}

template <class Rule, class T>
constexpr MeasureKernel<T> measure_kernel() {
  if constexpr (kMeasures<Rule>)
    return measure<Rule, T>;
  else
    return nullptr;
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
#define LOCKSTEP_UPDATE(name, Functor) update<Functor, T>,
#define LOCKSTEP_MEASURE(name, Functor) measure_kernel<Functor, T>(),
  return {.update = {LOCKSTEP_UPDATE_RULES(LOCKSTEP_UPDATE)},
          .measure = {LOCKSTEP_UPDATE_RULES(LOCKSTEP_MEASURE)},
          .sum_of_squares = sum_of_squares<T>,
          .all_finite = all_finite<T>};
#undef LOCKSTEP_UPDATE
#undef LOCKSTEP_MEASURE
}

}  // namespace

constinit const UpdateKernels<float> f32_update = kernels_of<float>();
constinit const UpdateKernels<double> f64_update = kernels_of<double>();

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
