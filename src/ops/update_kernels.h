// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"
#include "ops/update_list.h"

namespace lockstep {

// In place over n elements of weights and slots, none of which overlap. `scalars` is the factors of
// the gradient and of the weights' decay, then those of the rule.
template <class T>
using UpdateKernel = void (*)(T* const* state, const T* gradient, std::int64_t n, const T* scalars);

// Adds the squares of the two values that the rule measures.
template <class T>
using MeasureKernel = void (*)(const T* const* state, const T* gradient, std::int64_t n,
                               const T* scalars, double (&squares)[2]);

template <class T>
struct UpdateKernels {
  UpdateKernel<T> update[kUpdateKinds];
  MeasureKernel<T> measure[kUpdateKinds];  // null where nothing is measured
  // In a fixed order of additions.
  double (*sum_of_squares)(const T* x, std::int64_t n);
  bool (*all_finite)(const T* x, std::int64_t n);
};

LOCKSTEP_ISA_TABLE(UpdateKernels<float>, f32_update);
LOCKSTEP_ISA_TABLE(UpdateKernels<double>, f64_update);

template <class T>
const UpdateKernels<T>& update_kernels() {
  if constexpr (std::is_same_v<T, float>)
    return f32_update();
  else
    return f64_update();
}

}  // namespace lockstep
