// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv_transpose.h>

#include "nn/windows.h"

namespace lockstep::nn {

template <int axes>
ConvNDTranspose<axes>::ConvNDTranspose(std::int64_t in_channels, std::int64_t out_channels,
                                       const ConvNDTransposeOptions<axes>& options,
                                       SourceLocation at)
    : Layer(name_or(options.name, "conv", axes, "_transpose"), options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .groups = options.groups,
            .activation = options.activation},
      kernel_size_(options.kernel_size),
      output_padding_(options.output_padding),
      kernel_(add_variable("kernel",
                           kernel_shape(class_name("Conv", axes, "Transpose"),
                                        conv_sizes(out_channels, in_channels, options), at),
                           options.kernel_initializer)) {
  if (output_padding_)
    check_output_padding(class_name("Conv", axes, "Transpose"), extents_of(*output_padding_),
                         extents_of(options.strides), options.padding, at);
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

template <int axes>
Tensor ConvNDTranspose<axes>::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  constexpr int rank = axes + 2;
  const Tensor input = computed(x, {.min_rank = rank, .max_rank = rank, .size = input_size()}, at);
  const Tensor kernel = weight(kernel_, at);
  const Tensor bias = weight(bias_, at);
  ConvNdTransposeOptions<axes> conv = conv_;
  if (output_padding_) {
    std::array<std::int64_t, axes> extents = extents_of(*output_padding_);
    const auto strides = extents_of(conv_.strides);
    const auto kernel_size = extents_of(kernel_size_);
    const auto dilations = extents_of(conv_.dilations);
    for (int i = 0; i < axes; ++i)
      extents[i] = padded_extent(x.dim(i + 1), strides[i], kernel_size[i], dilations[i], extents[i],
                                 conv_.padding, at);
    conv.output_size = size_of(extents);
  }
  if constexpr (axes == 1)
    return conv1d_transpose(input, kernel, bias, conv, at);
  else if constexpr (axes == 2)
    return conv2d_transpose(input, kernel, bias, conv, at);
  else
    return conv3d_transpose(input, kernel, bias, conv, at);
}

template class ConvNDTranspose<1>;
template class ConvNDTranspose<2>;
template class ConvNDTranspose<3>;

}  // namespace lockstep::nn
