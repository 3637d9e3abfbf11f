// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv.h>

#include "nn/windows.h"

namespace lockstep::nn {

template <int axes>
ConvND<axes>::ConvND(std::int64_t in_channels, std::int64_t out_channels,
                     const ConvNDOptions<axes>& options, SourceLocation at)
    : Layer(name_or(options.name, "conv", axes), options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .groups = options.groups,
            .activation = options.activation},
      kernel_(add_variable("kernel",
                           kernel_shape(class_name("Conv", axes),
                                        conv_sizes(in_channels, out_channels, options), at),
                           options.kernel_initializer)) {
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

template <int axes>
Tensor ConvND<axes>::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  constexpr int rank = axes + 2;
  const Tensor input = computed(x, {.min_rank = rank, .max_rank = rank, .size = input_size()}, at);
  const Tensor kernel = weight(kernel_, at);
  const Tensor bias = weight(bias_, at);
  if constexpr (axes == 1)
    return conv1d(input, kernel, bias, conv_, at);
  else if constexpr (axes == 2)
    return conv2d(input, kernel, bias, conv_, at);
  else
    return conv3d(input, kernel, bias, conv_, at);
}

template class ConvND<1>;
template class ConvND<2>;
template class ConvND<3>;

}  // namespace lockstep::nn
