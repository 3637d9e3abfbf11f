// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/reduce.cuh"
#include "ops/update_list.h"

// Optimizer steps by the functors of ops/update_list.h.
namespace lockstep::cuda {

// What changes over time is read from device memory, in double; `scale` may be null.
struct UpdateNumbers {
  const double *rate, *number, *scale;
  double weight_decay;
};

// What all elements share, prepared by one thread of each block; `squares` are the sums of what the
// rule measures, null while they are not known.
template <class Rule, class C>
struct UpdateShared {
  C scale, decay;
  Values<C, Rule::kScalars> scalars;

  __device__ UpdateShared(const UpdateNumbers& numbers, const typename Rule::Options& options,
                          [[maybe_unused]] const double* squares) {
    LOCKSTEP_SHARED(double, prepared, Rule::kScalars);
    if (threadIdx.x == 0) {
      const GivenNumbers given{*numbers.rate, *numbers.number, numbers.weight_decay};
      const auto values = Rule::scalars(options, given);
      for (int k = 0; k < Rule::kScalars; ++k) prepared[k] = values.of[k];
      if constexpr (kMeasures<Rule>)
        if (squares)
          prepared[Rule::kScalars - 1] =
              Rule::trust(options, given, ::sqrt(squares[0]), ::sqrt(squares[1]));
    }
    __syncthreads();
    for (int k = 0; k < Rule::kScalars; ++k) scalars.of[k] = static_cast<C>(prepared[k]);
    scale = numbers.scale ? static_cast<C>(*numbers.scale) : C(1);
    decay = kOwnDecay<Rule> ? C(0) : static_cast<C>(*numbers.rate * numbers.weight_decay);
  }

  // Element i of weights and slots, the weight decayed.
  template <class S>
  __device__ Values<C, 1 + Rule::kSlots> load(const Values<S*, 1 + Rule::kSlots>& state,
                                              Index i) const {
    Values<C, 1 + Rule::kSlots> old;
    for (int k = 0; k <= Rule::kSlots; ++k) old.of[k] = Storage<S>::load(state.of[k][i]);
    old.of[0] -= old.of[0] * decay;
    return old;
  }
};

template <class Rule, class S>
__global__ void update_kernel(Values<S*, 1 + Rule::kSlots> state, const S* gradient,
                              UpdateNumbers numbers, typename Rule::Options options,
                              const double* squares, Index n) {
  using C = Compute<S>;
  const UpdateShared<Rule, C> shared(numbers, options, squares);
  for (Index i = first_index(); i < n; i += index_step()) {
    const Values<C, 1 + Rule::kSlots> next = Rule::template element<C>(
        shared.scalars, Storage<S>::load(gradient[i]) * shared.scale, shared.load(state, i));
    for (int k = 0; k <= Rule::kSlots; ++k) state.of[k][i] = Storage<S>::store(next.of[k]);
  }
}

// The sums of squares of what the rule measures, of each block: partial[b] and partial[blocks + b].
template <class Rule, class S>
__global__ void measure_kernel(Values<S*, 1 + Rule::kSlots> state, const S* gradient,
                               UpdateNumbers numbers, typename Rule::Options options,
                               double* partial, Index n) {
  using C = Compute<S>;
  const UpdateShared<Rule, C> shared(numbers, options, nullptr);
  double sums[2] = {};
  for (Index i = first_index(); i < n; i += index_step()) {
    const Values<C, 2> values = Rule::template measured<C>(
        shared.scalars, Storage<S>::load(gradient[i]) * shared.scale, shared.load(state, i));
    for (int k = 0; k < 2; ++k)
      sums[k] += static_cast<double>(values.of[k]) * static_cast<double>(values.of[k]);
  }
  for (int k = 0; k < 2; ++k) {
    const double sum = block_combine(sums[k], SumOf{});
    if (threadIdx.x == 0) partial[k * static_cast<Index>(gridDim.x) + blockIdx.x] = sum;
  }
}

// squares[k] is the sum of the k-th `blocks` numbers of partial.
template <class T>
__global__ void add_measures_kernel(const T* partial, T* squares, Index blocks) {
  for (int k = 0; k < 2; ++k) {
    T sum(0);
    for (Index i = threadIdx.x; i < blocks; i += blockDim.x) sum += partial[k * blocks + i];
    sum = block_combine(sum, SumOf{});
    if (threadIdx.x == 0) squares[k] = sum;
  }
}

}  // namespace lockstep::cuda
