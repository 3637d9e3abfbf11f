// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/update.cuh"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {

void adam(DType dtype, void* weights, void* first, void* second, const void* gradient,
          const double* rate, const double* number, const double* scale, const AdamOptions& options,
          std::int64_t n, Device device) {
  if (n == 0) return;
  const AdamConstants constants{options.beta1, options.beta2, options.epsilon,
                                options.weight_decay};
  visit_floating(dtype, [&]<class S>(S) {
    run(adam_kernel<S>, device, blocks_for(n), out<S>(weights), out<S>(first), out<S>(second),
        in<S>(gradient), rate, number, scale, constants, n);
  });
}

void sgd(DType dtype, void* weights, void* velocity, const void* gradient, const double* rate,
         const double* scale, const SgdOptions& options, std::int64_t n, Device device) {
  if (n == 0) return;
  const SgdConstants constants{options.momentum, options.weight_decay, options.nesterov};
  visit_floating(dtype, [&]<class S>(S) {
    run(sgd_kernel<S>, device, blocks_for(n), out<S>(weights), out<S>(velocity), in<S>(gradient),
        rate, scale, constants, n);
  });
}

}  // namespace lockstep::cuda
