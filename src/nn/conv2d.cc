// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/conv2d.h>
#include <lockstep/ops/conv.h>

namespace lockstep::nn {
namespace {

bool positive(Size2d size) { return size.height > 0 && size.width > 0; }

Shape kernel_shape(std::int64_t in, std::int64_t out, const Conv2DOptions& options,
                   SourceLocation at) {
  require(in > 0 && out > 0, at, "Conv2D", "expected channel counts of 1 or more, got ", in,
          " and ", out);
  require(positive(options.kernel_size) && positive(options.strides) && positive(options.dilations),
          at, "Conv2D", "expected a kernel size, strides and dilations of 1 or more");
  require(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0, at, "Conv2D",
          "expected groups that divide both channel counts, got ", options.groups, " groups of ",
          in, " and ", out, " channels");
  return Shape({options.kernel_size.height, options.kernel_size.width, in / options.groups, out},
               at, "Conv2D");
}

}  // namespace

Conv2D::Conv2D(std::int64_t in_channels, std::int64_t out_channels, const Conv2DOptions& options,
               SourceLocation at)
    : Layer(options.name, options.dtype, at),
      conv_{.strides = options.strides,
            .padding = options.padding,
            .dilations = options.dilations,
            .groups = options.groups,
            .activation = options.activation},
      kernel_(add_variable("kernel", kernel_shape(in_channels, out_channels, options, at),
                           options.kernel_initializer)) {
  if (options.use_bias) bias_ = add_variable("bias", Shape{out_channels}, options.bias_initializer);
}

Tensor Conv2D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor images = computed(x, {.min_rank = 4, .max_rank = 4, .size = input_size()}, at);
  return conv2d(images, weight(kernel_, at), weight(bias_, at), conv_, at);
}

}  // namespace lockstep::nn
