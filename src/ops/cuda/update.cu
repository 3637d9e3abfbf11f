// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/update.cuh"

#include "ops/cuda/launch.cuh"
#include "ops/update_bodies.h"

namespace lockstep::cuda {

void update(const UpdateRule& rule, DType dtype, void* const* state, const void* gradient,
            const UpdateScalars& scalars, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_update_rule(rule, [&]<class Rule>(Rule, const auto& options) {
    visit_floating(dtype, [&]<class S>(S) {
      Values<S*, 1 + Rule::kSlots> arrays;
      for (int k = 0; k <= Rule::kSlots; ++k) arrays.of[k] = out<S>(state[k]);
      run(update_kernel<Rule, S>, device, blocks_for(n), arrays, in<S>(gradient), scalars.rate,
          scalars.number, scalars.scale, scalars.weight_decay, options, n);
    });
  });
}

}  // namespace lockstep::cuda
