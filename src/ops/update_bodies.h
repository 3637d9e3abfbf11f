// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/update.h>

#include <cstdint>
#include <span>

// What apply_update() calls on TPUs and on GPUs, as traced.h and cuda/kernels.h have it for other ops.
// `state` is the weights and the rule's slots.
namespace lockstep::traced {

// The new state, in place of the old.
void update(const UpdateRule& rule, std::span<Tensor> state, const Tensor& gradient,
            const UpdateStep& step);

}  // namespace lockstep::traced

namespace lockstep::cuda {

// What an update is given, in device memory; `scale` may be null.
struct UpdateScalars {
  const double *rate, *number, *scale;
  double weight_decay;
};
void update(const UpdateRule& rule, DType dtype, void* const* state, const void* gradient,
            const UpdateScalars& scalars, std::int64_t n, Device device);

}  // namespace lockstep::cuda
