// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/depthwise_conv2d.h>

#include "nn/conv_sizes.h"

namespace lockstep::nn {

DepthwiseConv2D::DepthwiseConv2D(std::int64_t channels, const DepthwiseConv2DOptions& options,
                                 SourceLocation at)
    : Layer(options.name, options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .activation = options.activation},
      kernel_(add_variable(
          "kernel",
          kernel_shape("DepthwiseConv2D",
                       {channels, options.depth_multiplier, 1, extents_of(options.kernel_size),
                        extents_of(options.strides), extents_of(options.dilations)},
                       at),
          options.depthwise_initializer)) {
  if (options.use_bias)
    bias_ = add_variable("bias", Shape{output_size(channels)}, options.bias_initializer);
}

Tensor DepthwiseConv2D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 4, .max_rank = 4, .size = input_size()}, at);
  return depthwise_conv2d(input, weight(kernel_, at), weight(bias_, at), conv_, at);
}

}  // namespace lockstep::nn
