// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/depthwise_conv1d.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/conv_sizes.h"

namespace lockstep::nn {
namespace {

Padding as_2d(const Padding& padding, SourceLocation at) {
  if (padding.kind() != Padding::Kind::given) return padding;
  require(padding.axes() == 1, at, "DepthwiseConv1D", "expected padding {before, after}, got one ",
          "for ", padding.axes(), " axes");
  return {0, 0, padding.left(), padding.right()};
}

}  // namespace

DepthwiseConv1D::DepthwiseConv1D(std::int64_t channels, const DepthwiseConv1DOptions& options,
                                 SourceLocation at)
    : Layer(options.name, options.dtype, at),
      conv_{.strides = {1, options.strides},
            .padding = as_2d(options.padding, at),
            .dilations = {1, options.dilations},
            .activation = options.activation},
      kernel_(add_variable(
          "kernel",
          kernel_shape("DepthwiseConv1D",
                       {channels, options.depth_multiplier, 1, extents_of(options.kernel_size),
                        extents_of(options.strides), extents_of(options.dilations)},
                       at),
          options.depthwise_initializer)) {
  if (options.use_bias)
    bias_ = add_variable("bias", Shape{output_size(channels)}, options.bias_initializer);
}

Tensor DepthwiseConv1D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  const Tensor y =
      depthwise_conv2d(expand_dims(input, 1, at), expand_dims(weight(kernel_, at), 0, at),
                       weight(bias_, at), conv_, at);
  return squeeze(y, {1}, at);
}

}  // namespace lockstep::nn
