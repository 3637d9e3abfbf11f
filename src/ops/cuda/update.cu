// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/update.cuh"

#include <lockstep/device/buffer.h>

#include "ops/cuda/launch.cuh"
#include "ops/update_bodies.h"

namespace lockstep::cuda {

void update(const UpdateRule& rule, DType dtype, void* const* state, const void* gradient,
            const UpdateScalars& scalars, std::int64_t n, Device device) {
  if (n == 0) return;
  const UpdateNumbers numbers{scalars.rate, scalars.number, scalars.scale, scalars.weight_decay};
  const int blocks = blocks_for(n);
  visit_update_rule(rule, [&]<class Rule>(Rule, const auto& options) {
    visit_floating(dtype, [&]<class S>(S) {
      Values<S*, 1 + Rule::kSlots> arrays;
      for (int k = 0; k <= Rule::kSlots; ++k) arrays.of[k] = out<S>(state[k]);
      Buffer memory;
      double* squares = nullptr;
      if constexpr (kMeasures<Rule>) {
        memory =
            Buffer::allocate(device, (2 * static_cast<std::size_t>(blocks) + 2) * sizeof(double));
        squares = static_cast<double*>(memory.data());
        run(measure_kernel<Rule, S>, device, blocks, arrays, in<S>(gradient), numbers, options,
            squares + 2, n);
        run(add_measures_kernel<double>, device, 1, squares + 2, squares, blocks);
      }
      run(update_kernel<Rule, S>, device, blocks, arrays, in<S>(gradient), numbers, options,
          squares, n);
    });
  });
}

}  // namespace lockstep::cuda
