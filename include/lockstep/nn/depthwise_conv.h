// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/ops/conv.h>

#include <optional>
#include <string>

namespace lockstep::nn {

template <int axes>
struct DepthwiseConvNDOptions {
  SizeNd<axes> kernel_size = 3;
  SizeNd<axes> strides = 1;
  Padding padding = Padding::valid;
  std::int64_t depth_multiplier = 1;  // results per channel
  SizeNd<axes> dilations = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer depthwise_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = {};                      // empty: "depthwise_conv1d", "depthwise_conv2d"
};

// A convolution of each channel of sequences or images by itself: [batch, extents.., channels] to
// [batch, out extents.., channels * depth_multiplier], where the extents are width, or height and
// width (ops/conv.h). Variables: "<name>/kernel" [kernel extents.., channels, depth_multiplier] and
// "<name>/bias" [channels * depth_multiplier].
template <int axes>
class LOCKSTEP_EXPORT DepthwiseConvND : public Layer {
 public:
  // Throws InvalidArgument for a channel count, multiplier, kernel size, stride or dilation below
  // 1, padding for another number of axes, or a dtype that is not floating.
  explicit DepthwiseConvND(std::int64_t channels, const DepthwiseConvNDOptions<axes>& options = {},
                           SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[<name>] ..." when x is not of rank axes + 2, of other channels or not
  // floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[axes]; }
  std::int64_t output_size(std::int64_t) const {
    return kernel_.shape()[axes] * kernel_.shape()[axes + 1];
  }

 private:
  Conv2dOptions conv_;  // sequences as images of one row
  Variable kernel_;
  std::optional<Variable> bias_;
};

using DepthwiseConv1D = DepthwiseConvND<1>;
using DepthwiseConv2D = DepthwiseConvND<2>;
using DepthwiseConv1DOptions = DepthwiseConvNDOptions<1>;
using DepthwiseConv2DOptions = DepthwiseConvNDOptions<2>;

extern template class DepthwiseConvND<1>;
extern template class DepthwiseConvND<2>;

}  // namespace lockstep::nn
