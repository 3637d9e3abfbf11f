// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise_kernels.h"

// The loops around the elementwise functors, instantiated by elementwise_isa.cc. Anonymous, as it is
// compiled for different CPUs.
namespace lockstep {
namespace {

// Whether the loop of a functor has to look for arguments that are far.
template <class F, class... T>
constexpr bool kMayBeFar = (std::is_same_v<T, float> && ...) && requires { F::is_far(T()...); };

template <class F, class T>
void unary_forward(const void* x, void* y, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(x);
  T* __restrict to = static_cast<T*>(y);
  if constexpr (kMayBeFar<F, T>) {
    std::uint32_t far = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = F::forward(from[i]);
      far |= F::is_far(from[i]) ? 1u : 0u;
    }
    for (std::int64_t i = 0; far && i < n; ++i)
      if (F::is_far(from[i])) to[i] = F::far(from[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = F::forward(from[i]);
  }
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

// A row of results; an operand that does not move along it is one element.
template <class F, bool a_moves, bool b_moves, class T, class Y>
void binary_row(const T* __restrict a, const T* __restrict b, Y* __restrict y, std::int64_t n) {
  if constexpr (kMayBeFar<F, T, T>) {
    std::uint32_t far = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = F::forward(a[a_moves ? i : 0], b[b_moves ? i : 0]);
      far |= F::is_far(a[a_moves ? i : 0], b[b_moves ? i : 0]) ? 1u : 0u;
    }
    for (std::int64_t i = 0; far && i < n; ++i)
      if (F::is_far(a[a_moves ? i : 0], b[b_moves ? i : 0]))
        y[i] = F::far(a[a_moves ? i : 0], b[b_moves ? i : 0]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::forward(a[a_moves ? i : 0], b[b_moves ? i : 0]);
  }
}

template <class F, class T, class Y>
void binary_forward(const void* a, const void* b, void* y, const BinaryBlock& block) {
  const T* from_a = static_cast<const T*>(a);
  const T* from_b = static_cast<const T*>(b);
  Y* to = static_cast<Y*>(y);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    if (block.a_col && block.b_col)
      binary_row<F, true, true>(from_a, from_b, to, block.cols);
    else if (block.a_col)
      binary_row<F, true, false>(from_a, from_b, to, block.cols);
    else
      binary_row<F, false, true>(from_a, from_b, to, block.cols);
    from_a += block.a_row;
    from_b += block.b_row;
    to += block.cols;
  }
}

enum class Of { a, b };

template <class F, Of of, bool both_move, class T>
void gradient_row(const T* __restrict dy, const T* __restrict a, const T* __restrict b,
                  const T* __restrict y, T* __restrict dx, std::int64_t n) {
  constexpr unsigned kReads = of == Of::a ? F::kGradientAKeeps : F::kGradientBKeeps;
  for (std::int64_t i = 0; i < n; ++i) {
    const T from_a = kReads & kA ? a[both_move || of == Of::a ? i : 0] : T();
    const T from_b = kReads & kB ? b[both_move || of == Of::b ? i : 0] : T();
    const T from_y = kReads & kResult ? y[i] : T();
    if constexpr (of == Of::a)
      dx[i] = F::gradient_a(dy[i], from_a, from_b, from_y);
    else
      dx[i] = F::gradient_b(dy[i], from_a, from_b, from_y);
  }
}

template <class F, Of of, class T>
void binary_gradient(const BinaryGradientInputs& from, void* dx, std::int64_t n) {
  const auto row = from.both_move ? gradient_row<F, of, true, T> : gradient_row<F, of, false, T>;
  row(static_cast<const T*>(from.dy), static_cast<const T*>(from.a), static_cast<const T*>(from.b),
      static_cast<const T*>(from.y), static_cast<T*>(dx), n);
}

template <class F, class T>
void predicate_forward(const void* x, bool* __restrict y, std::int64_t n) {
  const T* __restrict from = static_cast<const T*>(x);
  for (std::int64_t i = 0; i < n; ++i) y[i] = F::forward(from[i]);
}

// A few vectors at a time, and between the two functors in memory: the compiler makes branches of both
// together.
template <class T>
void clamp(const void* x, const void* low, const void* high, void* y, std::int64_t n) {
  constexpr std::int64_t kBlock = 64;
  const T* __restrict from = static_cast<const T*>(x);
  T* __restrict to = static_cast<T*>(y);
  const T least = *static_cast<const T*>(low), most = *static_cast<const T*>(high);
  alignas(64) T raised[kBlock];
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (std::int64_t j = 0; j < kBlock; ++j) raised[j] = Maximum::forward(from[i + j], least);
    for (std::int64_t j = 0; j < kBlock; ++j) to[i + j] = Minimum::forward(raised[j], most);
  }
  for (; i < n; ++i) to[i] = Minimum::forward(Maximum::forward(from[i], least), most);
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

template <class F, Of of, class T>
constexpr BinaryGradientKernel gradient_kernel() {
  constexpr bool kOfScalars = of == Of::a ? requires(T x) { F::gradient_a(x, x, x, x); }
                                          : requires(T x) { F::gradient_b(x, x, x, x); };
  if constexpr (std::is_floating_point_v<T> && kOfScalars)
    return binary_gradient<F, of, T>;
  else
    return nullptr;
}

template <class T>
constexpr ElementwiseKernels elementwise_kernels_of() {
#define LOCKSTEP_UNARY(name, Functor) unary_kernel<Functor, T>(),
#define LOCKSTEP_BINARY(name, Functor) binary_kernel<Functor, T, T>(),
#define LOCKSTEP_GRADIENTS(name, Functor) \
  {gradient_kernel<Functor, Of::a, T>(), gradient_kernel<Functor, Of::b, T>()},
#define LOCKSTEP_COMPARE(name, Functor) binary_kernel<Functor, T, bool>(),
#define LOCKSTEP_PREDICATE(name, Functor) predicate_forward<Functor, T>,
  return {.unary = {LOCKSTEP_UNARY_OPS(LOCKSTEP_UNARY)},
          .binary = {LOCKSTEP_BINARY_OPS(LOCKSTEP_BINARY)},
          .binary_gradient = {LOCKSTEP_BINARY_OPS(LOCKSTEP_GRADIENTS)},
          .compare = {LOCKSTEP_COMPARE_OPS(LOCKSTEP_COMPARE)},
          .predicate = {LOCKSTEP_PREDICATE_OPS(LOCKSTEP_PREDICATE)},
          .clamp = clamp<T>};
#undef LOCKSTEP_UNARY
#undef LOCKSTEP_BINARY
#undef LOCKSTEP_GRADIENTS
#undef LOCKSTEP_COMPARE
#undef LOCKSTEP_PREDICATE
}

}  // namespace
}  // namespace lockstep
