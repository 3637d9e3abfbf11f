// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv1d.h>
#include <lockstep/ops/conv.h>

#include "nn/conv_sizes.h"

namespace lockstep::nn {

Conv1D::Conv1D(std::int64_t in_channels, std::int64_t out_channels, const Conv1DOptions& options,
               SourceLocation at)
    : Layer(options.name, options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .groups = options.groups,
            .activation = options.activation},
      kernel_(add_variable(
          "kernel", kernel_shape("Conv1D", conv_sizes(in_channels, out_channels, options), at),
          options.kernel_initializer)) {
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

Tensor Conv1D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  return conv1d(input, weight(kernel_, at), weight(bias_, at), conv_, at);
}

}  // namespace lockstep::nn
