// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/kernel.cuh"
#include "ops/update_functors.h"

// Optimizer steps by the functors of ops/update_functors.h. What changes over time is read from device
// memory, in double; `scale` may be null.
namespace lockstep::cuda {

// What all elements share is prepared by one thread of each block.
template <class Rule, class S>
__global__ void update_kernel(Values<S*, 1 + Rule::kSlots> state, const S* gradient,
                              const double* rate, const double* number, const double* scale,
                              double weight_decay, typename Rule::Options options, Index n) {
  using C = Compute<S>;
  constexpr int kState = 1 + Rule::kSlots;
  LOCKSTEP_SHARED(double, prepared, Rule::kScalars);
  if (threadIdx.x == 0) {
    const auto scalars = Rule::scalars(options, GivenNumbers{*rate, *number});
    for (int k = 0; k < Rule::kScalars; ++k) prepared[k] = scalars.of[k];
  }
  __syncthreads();
  Values<C, Rule::kScalars> scalars;
  for (int k = 0; k < Rule::kScalars; ++k) scalars.of[k] = static_cast<C>(prepared[k]);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  const C decay = static_cast<C>(*rate * weight_decay);
  for (Index i = first_index(); i < n; i += index_step()) {
    Values<C, kState> old;
    for (int k = 0; k < kState; ++k) old.of[k] = Storage<S>::load(state.of[k][i]);
    old.of[0] -= old.of[0] * decay;
    const Values<C, kState> next =
        Rule::template element<C>(scalars, Storage<S>::load(gradient[i]) * factor, old);
    for (int k = 0; k < kState; ++k) state.of[k][i] = Storage<S>::store(next.of[k]);
  }
}

}  // namespace lockstep::cuda
