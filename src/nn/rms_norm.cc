// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/rms_norm.h>
#include <lockstep/ops/norm.h>

#include "nn/norm_layers.h"

namespace lockstep::nn {
namespace {

Shape scale_shape(std::int64_t features, double epsilon, SourceLocation at) {
  check_norm("RMSNorm", features, epsilon, at);
  return {features};
}

}  // namespace

RMSNorm::RMSNorm(std::int64_t features, const RMSNormOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      epsilon_(options.epsilon),
      scale_(add_norm_variable("scale", scale_shape(features, options.epsilon, at),
                               options.scale_initializer)) {}

Tensor RMSNorm::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.size = input_size()}, at);
  return rms_norm(input, scale_.read(at), {.epsilon = epsilon_}, at);
}

}  // namespace lockstep::nn
