// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/depthwise_conv.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/windows.h"

namespace lockstep::nn {
namespace {

Size2d as_2d(std::int64_t size) { return {1, size}; }
Size2d as_2d(Size2d size) { return size; }

template <int axes>
Padding as_2d(const Padding& padding, SourceLocation at) {
  if (axes == 2 || padding.kind() != Padding::Kind::given) return padding;
  require(padding.axes() == 1, at, "DepthwiseConv1D", "expected padding {before, after}, got one ",
          "for ", padding.axes(), " axes");
  return {0, 0, padding.left(), padding.right()};
}

}  // namespace

template <int axes>
DepthwiseConvND<axes>::DepthwiseConvND(std::int64_t channels,
                                       const DepthwiseConvNDOptions<axes>& options,
                                       SourceLocation at)
    : Layer(name_or(options.name, "depthwise_conv", axes), options.dtype, at),
      conv_{.strides = as_2d(options.strides),
            .padding = as_2d<axes>(options.padding, at),
            .dilations = as_2d(options.dilations),
            .activation = options.activation},
      kernel_(add_variable(
          "kernel",
          kernel_shape(class_name("DepthwiseConv", axes),
                       {channels, options.depth_multiplier, 1, listed(options.kernel_size),
                        listed(options.strides), listed(options.dilations)},
                       at),
          options.depthwise_initializer)) {
  if (options.use_bias)
    bias_ = add_variable("bias", Shape{output_size(channels)}, options.bias_initializer);
}

template <int axes>
Tensor DepthwiseConvND<axes>::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  constexpr int rank = axes + 2;
  const Tensor input = computed(x, {.min_rank = rank, .max_rank = rank, .size = input_size()}, at);
  const Tensor kernel = weight(kernel_, at);
  const Tensor bias = weight(bias_, at);
  if constexpr (axes == 2) return depthwise_conv2d(input, kernel, bias, conv_, at);
  const Tensor y =
      depthwise_conv2d(expand_dims(input, 1, at), expand_dims(kernel, 0, at), bias, conv_, at);
  return squeeze(y, {1}, at);
}

template class DepthwiseConvND<1>;
template class DepthwiseConvND<2>;

}  // namespace lockstep::nn
