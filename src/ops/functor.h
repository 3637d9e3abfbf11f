// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/math.h"

// What the functors of elementwise ops share: there is one for an op, in unary_list.h (activations:
// activation_functors.h) and binary_list.h. To add one: its functor, its name in the list that ends
// the file, its declaration in lockstep/ops/, and a row in tests/support/elementwise_rows.h.
//
// A functor says
//   supports<T>     for which element types kernels are built (f16 and bf16 come with float)
//   forward(x...)   the value of one element
//   traced(x...)    the same as an expression of StableHLO (hlo.h), for TPUs
//   derivative(v)   unary: dy/dx from what kKeeps names, the argument or the result; an op that has
//                   none is constant almost everywhere, and no gradient flows through it
//   gradient_a, _b  binary: the gradient of each argument, before it is summed to its shape, from
//                   what kGradientAKeeps, _B name; undefined tensors stand for the rest
//   is_far, far     of floats on CPUs, whether arguments are such that the vector code of `forward`
//                   does not reach them, and what the C library makes of them
// Functions are LOCKSTEP_HD, so that CUDA kernels are made of the same functors (cuda/elementwise.cuh).
// Derivatives are written once for scalars, from which fused gradient kernels are made, and for
// tensors, which gradients of gradients use: V is float, double or Tensor, and Number<V> what stands
// beside it.
#if defined(__CUDACC__)
#define LOCKSTEP_HD __host__ __device__
#else
#define LOCKSTEP_HD
#endif

namespace lockstep {
namespace {

enum Keeps : unsigned { kNothing = 0, kArgument = 1, kResult = 2, kA = 4, kB = 8 };

template <class V>
using Number = std::conditional_t<std::is_arithmetic_v<V>, V, double>;

template <class V>
concept Scalar = std::is_arithmetic_v<V>;

// V of a binary op's gradient that no kernel is made of: it is one op already, or depends on dtypes.
template <class V>
concept AsOps = !Scalar<V>;

// Of scalars, what ops of these names are of tensors.
#define LOCKSTEP_SCALAR [[maybe_unused, gnu::always_inline]] LOCKSTEP_HD inline
template <Scalar T>
LOCKSTEP_SCALAR T select(bool condition, T a, T b) {
  return condition ? a : b;
}
template <Scalar T>
LOCKSTEP_SCALAR bool greater(T a, T b) {
  return a > b;
}
template <Scalar T>
LOCKSTEP_SCALAR bool greater_equal(T a, T b) {
  return a >= b;
}
template <Scalar T>
LOCKSTEP_SCALAR bool less_equal(T a, T b) {
  return a <= b;
}

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
LOCKSTEP_SCALAR bool not_a_number(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

}  // namespace
}  // namespace lockstep
