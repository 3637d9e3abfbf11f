// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/kernel.cuh"

// Optimizer steps; ops/update.h says what is computed. Scalars that change over time are read from
// device memory, in double; `scale` may be null.
namespace lockstep::cuda {

struct AdamConstants {
  double beta1, beta2, epsilon, weight_decay;
};
struct SgdConstants {
  double momentum, weight_decay;
  bool nesterov;
};

// What all elements share is prepared by one thread of each block.
template <class S>
__global__ void adam_kernel(S* weights, S* first, S* second, const S* gradient, const double* rate,
                            const double* number, const double* scale, AdamConstants constants,
                            Index n) {
  using C = Compute<S>;
  LOCKSTEP_SHARED(double, corrected, 1);
  if (threadIdx.x == 0)
    corrected[0] =
        *rate * ::sqrt(1 - ::pow(constants.beta2, *number)) / (1 - ::pow(constants.beta1, *number));
  __syncthreads();
  const C step = static_cast<C>(corrected[0]);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  const C decay = static_cast<C>(*rate * constants.weight_decay);
  const C one_minus_beta1 = static_cast<C>(1 - constants.beta1);
  const C one_minus_beta2 = static_cast<C>(1 - constants.beta2);
  const C epsilon = static_cast<C>(constants.epsilon);
  for (Index i = first_index(); i < n; i += index_step()) {
    const C g = Storage<S>::load(gradient[i]) * factor;
    C w = Storage<S>::load(weights[i]), m = Storage<S>::load(first[i]),
      v = Storage<S>::load(second[i]);
    w -= w * decay;
    m += (g - m) * one_minus_beta1;
    v += (g * g - v) * one_minus_beta2;
    w -= step * m / (static_cast<C>(::sqrt(v)) + epsilon);
    weights[i] = Storage<S>::store(w);
    first[i] = Storage<S>::store(m);
    second[i] = Storage<S>::store(v);
  }
}

// velocity is null without momentum.
template <class S>
__global__ void sgd_kernel(S* weights, S* velocity, const S* gradient, const double* rate,
                           const double* scale, SgdConstants constants, Index n) {
  using C = Compute<S>;
  const C step = static_cast<C>(*rate);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  const C decay = static_cast<C>(*rate * constants.weight_decay);
  const C momentum = static_cast<C>(constants.momentum);
  for (Index i = first_index(); i < n; i += index_step()) {
    const C move = step * (Storage<S>::load(gradient[i]) * factor);
    C w = Storage<S>::load(weights[i]);
    w -= w * decay;
    if (velocity) {
      const C v = momentum * Storage<S>::load(velocity[i]) - move;
      w += constants.nesterov ? momentum * v - move : v;
      velocity[i] = Storage<S>::store(v);
    } else {
      w -= move;
    }
    weights[i] = Storage<S>::store(w);
  }
}

}  // namespace lockstep::cuda
