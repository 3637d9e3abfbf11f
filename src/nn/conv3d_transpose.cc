// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv3d_transpose.h>
#include <lockstep/ops/conv.h>

#include "nn/conv_sizes.h"

namespace lockstep::nn {

Conv3DTranspose::Conv3DTranspose(std::int64_t in_channels, std::int64_t out_channels,
                                 const Conv3DTransposeOptions& options, SourceLocation at)
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
          kernel_shape("Conv3DTranspose", conv_sizes(out_channels, in_channels, options), at),
          options.kernel_initializer)) {
  if (output_padding_)
    check_output_padding("Conv3DTranspose", extents_of(*output_padding_),
                         extents_of(options.strides), options.padding, at);
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

Tensor Conv3DTranspose::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 5, .max_rank = 5, .size = input_size()}, at);
  Conv3dTransposeOptions conv = conv_;
  if (output_padding_)
    conv.output_size = {
        padded_extent(x.dim(1), conv_.strides.depth, kernel_size_.depth, conv_.dilations.depth,
                      output_padding_->depth, conv_.padding, at),
        padded_extent(x.dim(2), conv_.strides.height, kernel_size_.height, conv_.dilations.height,
                      output_padding_->height, conv_.padding, at),
        padded_extent(x.dim(3), conv_.strides.width, kernel_size_.width, conv_.dilations.width,
                      output_padding_->width, conv_.padding, at)};
  return conv3d_transpose(input, weight(kernel_, at), weight(bias_, at), conv, at);
}

}  // namespace lockstep::nn
