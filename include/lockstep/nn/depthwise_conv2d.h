// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/ops/conv.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct DepthwiseConv2DOptions {
  Size2d kernel_size = 3;
  Size2d strides = 1;
  Padding padding = Padding::valid;
  std::int64_t depth_multiplier = 1;  // results per channel
  Size2d dilations = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer depthwise_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "depthwise_conv2d";
};

// A convolution of each channel of images by itself: [batch, height, width, channels] to [batch,
// out height, out width, channels * depth_multiplier] (ops/conv.h). Variables: "<name>/kernel"
// [kernel height, kernel width, channels, depth_multiplier] and "<name>/bias" [channels *
// depth_multiplier].
class LOCKSTEP_EXPORT DepthwiseConv2D : public Layer {
 public:
  // Throws InvalidArgument for a channel count, multiplier, kernel size, stride or dilation below
  // 1, or a dtype that is not floating.
  explicit DepthwiseConv2D(std::int64_t channels, const DepthwiseConv2DOptions& options = {},
                           SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[depthwise_conv2d] ..." when x is not of rank 4, of other channels or
  // not floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[2]; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[2] * kernel_.shape()[3]; }

 private:
  Conv2dOptions conv_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
