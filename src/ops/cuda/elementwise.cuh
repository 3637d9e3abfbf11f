// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <type_traits>

#include "ops/binary_list.h"
#include "ops/broadcast.h"
#include "ops/cuda/kernel.cuh"
#include "ops/unary_list.h"

// Elementwise kernels, made of the functors that the CPU's are made of.
namespace lockstep::cuda {

template <class F, class S>
__global__ void unary_kernel(const S* x, S* y, Index n) {
  for (Index i = first_index(); i < n; i += index_step())
    y[i] = Storage<S>::store(F::forward(Storage<S>::load(x[i])));
}

// dx = dy * derivative(kept); kept is not read where the derivative is constant.
template <class F, class S>
__global__ void unary_gradient_kernel(const S* dy, const S* kept, S* dx, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Compute<S> gradient = Storage<S>::load(dy[i]);
    if constexpr (F::kKeeps == kNothing)
      dx[i] = Storage<S>::store(gradient * F::derivative(gradient));
    else
      dx[i] = Storage<S>::store(gradient * F::derivative(Storage<S>::load(kept[i])));
  }
}

// Where the operands of result i lie.
template <int N>
__device__ void offsets_of(const Broadcast<N>& plan, Index i, Index (&offsets)[N]) {
  for (Index& offset : offsets) offset = 0;
  for (int axis = plan.rank - 1; axis >= 0; --axis) {
    const Index place = i % plan.extents[axis];
    i /= plan.extents[axis];
    for (int k = 0; k < N; ++k) offsets[k] += place * plan.strides[axis][k];
  }
}

// Y is S, or bool for comparisons.
template <class F, class S, class Y>
__global__ void binary_kernel(const S* a, const S* b, Y* y, Broadcast<2> plan, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    Index from[2];
    offsets_of(plan, i, from);
    const auto value = F::forward(Storage<S>::load(a[from[0]]), Storage<S>::load(b[from[1]]));
    if constexpr (std::is_same_v<Y, bool>)
      y[i] = value;
    else
      y[i] = Storage<Y>::store(value);
  }
}

// U: an unsigned integer of the element's size.
template <class U>
__global__ void select_kernel(const bool* condition, const U* a, const U* b, U* y,
                              Broadcast<3> plan, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    Index from[3];
    offsets_of(plan, i, from);
    y[i] = condition[from[0]] ? a[from[1]] : b[from[2]];
  }
}

template <class F, class S>
__global__ void predicate_kernel(const S* x, bool* y, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) y[i] = F::forward(Storage<S>::load(x[i]));
}

// As cast() on the CPU: floats to integers saturate, NaN becomes 0.
template <class To, class From>
__device__ To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The largest value may round up to one beyond it, so that the range is half open.
    constexpr From kBegin = static_cast<From>(std::numeric_limits<To>::min());
    constexpr To kHalfOfEnd = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kEnd = static_cast<From>(kHalfOfEnd) * From(2);
    if (x != x) return To(0);
    if (x < kBegin) return std::numeric_limits<To>::min();
    return x >= kEnd ? std::numeric_limits<To>::max() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
__global__ void cast_kernel(const From* x, To* y, Index n) {
  for (Index i = first_index(); i < n; i += index_step())
    y[i] = Storage<To>::store(converted<Compute<To>>(Storage<From>::load(x[i])));
}

}  // namespace lockstep::cuda
