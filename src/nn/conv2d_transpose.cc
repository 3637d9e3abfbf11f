// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv2d_transpose.h>
#include <lockstep/ops/conv.h>

#include "nn/conv_sizes.h"

namespace lockstep::nn {

Conv2DTranspose::Conv2DTranspose(std::int64_t in_channels, std::int64_t out_channels,
                                 const Conv2DTransposeOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .groups = options.groups,
            .activation = options.activation},
      kernel_size_(options.kernel_size),
      output_padding_(options.output_padding),
      kernel_(add_variable(
          "kernel",
          kernel_shape("Conv2DTranspose", conv_sizes(out_channels, in_channels, options), at),
          options.kernel_initializer)) {
  if (output_padding_)
    check_output_padding("Conv2DTranspose", extents_of(*output_padding_),
                         extents_of(options.strides), options.padding, at);
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

Tensor Conv2DTranspose::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 4, .max_rank = 4, .size = input_size()}, at);
  Conv2dTransposeOptions conv = conv_;
  if (output_padding_)
    conv.output_size = {
        padded_extent(x.dim(1), conv_.strides.height, kernel_size_.height, conv_.dilations.height,
                      output_padding_->height, conv_.padding, at),
        padded_extent(x.dim(2), conv_.strides.width, kernel_size_.width, conv_.dilations.width,
                      output_padding_->width, conv_.padding, at)};
  return conv2d_transpose(input, weight(kernel_, at), weight(bias_, at), conv, at);
}

}  // namespace lockstep::nn
