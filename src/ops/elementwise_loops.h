// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise_kernels.h"

// The loops around the elementwise functors, instantiated by elementwise_isa.cc for float and by
// elementwise_cpu.cc for the rest. Anonymous, as its includers are compiled for different CPUs.
namespace lockstep {
namespace {

template <class F, class T>
void unary_forward(const void* x, void* y, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(x);
  T* __restrict to = static_cast<T*>(y);
  for (std::int64_t i = 0; i < n; ++i) to[i] = F::forward(from[i]);
  if constexpr (std::is_same_v<T, float> && requires { F::far(0.0f); })
    for (std::int64_t i = 0; i < n; ++i)
      if (math::abs(from[i]) > math::kTrigonometricLimit) to[i] = F::far(from[i]);
}

template <class F, class T>
void unary_gradient(const void* dy, const void* kept, void* dx, std::int64_t n) {
  const T* __restrict gradient = static_cast<const T*>(dy);
  T* __restrict to = static_cast<T*>(dx);
  if constexpr (F::kKeeps == kNothing) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = gradient[i] * F::derivative(gradient[i]);
  } else {
    const T* __restrict value = static_cast<const T*>(kept);
    for (std::int64_t i = 0; i < n; ++i) to[i] = gradient[i] * F::derivative(value[i]);
  }
}

template <class F, class T, class Y>
void binary_forward(const void* a, const void* b, void* y, const BinaryBlock& block) {
  const T* row_a = static_cast<const T*>(a);
  const T* row_b = static_cast<const T*>(b);
  Y* __restrict to = static_cast<Y*>(y);
  const std::int64_t cols = block.cols;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const T* __restrict from_a = row_a;
    const T* __restrict from_b = row_b;
    if (block.a_col && block.b_col) {
      for (std::int64_t i = 0; i < cols; ++i) to[i] = F::forward(from_a[i], from_b[i]);
    } else if (block.a_col) {
      const T value = *from_b;
      for (std::int64_t i = 0; i < cols; ++i) to[i] = F::forward(from_a[i], value);
    } else {
      const T value = *from_a;
      for (std::int64_t i = 0; i < cols; ++i) to[i] = F::forward(value, from_b[i]);
    }
    row_a += block.a_row;
    row_b += block.b_row;
    to += cols;
  }
}

template <class F, class T>
void predicate_forward(const void* x, bool* __restrict y, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(x);
  for (std::int64_t i = 0; i < n; ++i) y[i] = F::forward(from[i]);
}

template <class F, class T>
constexpr UnaryKernel unary_kernel() {
  if constexpr (!F::template supports<T>)
    return {nullptr, nullptr};
  else if constexpr (std::is_floating_point_v<T> && requires { F::kKeeps; })
    return {unary_forward<F, T>, unary_gradient<F, T>};
  else
    return {unary_forward<F, T>, nullptr};
}

template <class F, class T, class Y>
constexpr BinaryKernel binary_kernel() {
  if constexpr (F::template supports<T>)
    return binary_forward<F, T, Y>;
  else
    return nullptr;
}

template <class T>
constexpr ElementwiseKernels elementwise_kernels_of() {
#define LOCKSTEP_UNARY(name, Functor) unary_kernel<Functor, T>(),
#define LOCKSTEP_BINARY(name, Functor) binary_kernel<Functor, T, T>(),
#define LOCKSTEP_COMPARE(name, Functor) binary_kernel<Functor, T, bool>(),
#define LOCKSTEP_PREDICATE(name, Functor) predicate_forward<Functor, T>,
  return {.unary = {LOCKSTEP_UNARY_OPS(LOCKSTEP_UNARY)},
          .binary = {LOCKSTEP_BINARY_OPS(LOCKSTEP_BINARY)},
          .compare = {LOCKSTEP_COMPARE_OPS(LOCKSTEP_COMPARE)},
          .predicate = {LOCKSTEP_PREDICATE_OPS(LOCKSTEP_PREDICATE)}};
#undef LOCKSTEP_UNARY
#undef LOCKSTEP_BINARY
#undef LOCKSTEP_COMPARE
#undef LOCKSTEP_PREDICATE
}

}  // namespace
}  // namespace lockstep
