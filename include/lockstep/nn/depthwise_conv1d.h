// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/ops/conv.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct DepthwiseConv1DOptions {
  std::int64_t kernel_size = 3;
  std::int64_t strides = 1;
  Padding padding = Padding::valid;
  std::int64_t depth_multiplier = 1;  // results per channel
  std::int64_t dilations = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer depthwise_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "depthwise_conv1d";
};

// A convolution of each channel of sequences by itself: [batch, width, channels] to [batch, out
// width, channels * depth_multiplier]. Variables: "<name>/kernel" [kernel width, channels,
// depth_multiplier] and "<name>/bias" [channels * depth_multiplier].
class LOCKSTEP_EXPORT DepthwiseConv1D : public Layer {
 public:
  // Throws InvalidArgument for a channel count, multiplier, kernel size, stride or dilation below
  // 1, padding for another number of axes, or a dtype that is not floating.
  explicit DepthwiseConv1D(std::int64_t channels, const DepthwiseConv1DOptions& options = {},
                           SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[depthwise_conv1d] ..." when x is not of rank 3, of other channels or
  // not floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[1]; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[1] * kernel_.shape()[2]; }

 private:
  Conv2dOptions conv_;  // of rows as images of one row
  Variable kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
