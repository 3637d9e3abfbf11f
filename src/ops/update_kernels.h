// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// The scalars of one update, already combined.
template <class T>
struct AdamFactors {
  T scale, decay, rate, one_minus_beta1, one_minus_beta2, epsilon;
};
template <class T>
struct SgdFactors {
  T scale, decay, rate, momentum;
  bool nesterov;
};

// In place over n elements; no two arrays overlap. velocity is null without momentum.
template <class T>
struct UpdateKernels {
  void (*adam)(T* weights, T* first, T* second, const T* gradient, std::int64_t n,
               const AdamFactors<T>& factors);
  void (*sgd)(T* weights, T* velocity, const T* gradient, std::int64_t n,
              const SgdFactors<T>& factors);
  // In a fixed order of additions.
  double (*sum_of_squares)(const T* x, std::int64_t n);
  bool (*all_finite)(const T* x, std::int64_t n);
};

LOCKSTEP_ISA_TABLE(UpdateKernels<float>, f32_update);
LOCKSTEP_ISA_TABLE(UpdateKernels<double>, f64_update);

}  // namespace lockstep
