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
struct ConvNDOptions {
  SizeNd<axes> kernel_size = 3;
  SizeNd<axes> strides = 1;
  Padding padding = Padding::valid;
  SizeNd<axes> dilations = 1;
  std::int64_t groups = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = {};                      // empty: "conv1d", "conv2d", "conv3d"
};

// A convolution of sequences, images or volumes: activation(x * kernel + bias), [batch, extents..,
// in] to [batch, out extents.., out], where the extents are width, or height and width, or depth,
// height and width (ops/conv.h). Variables: "<name>/kernel" [kernel extents.., in / groups, out] and
// "<name>/bias" [out].
template <int axes>
class LOCKSTEP_EXPORT ConvND : public Layer {
 public:
  // Throws InvalidArgument for a channel count, kernel size, stride or dilation below 1, groups
  // that do not divide both channel counts, or a dtype that is not floating.
  ConvND(std::int64_t in_channels, std::int64_t out_channels,
         const ConvNDOptions<axes>& options = {}, SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[<name>] ..." when x is not of rank axes + 2, of other channels or not
  // floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[axes] * conv_.groups; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[axes + 1]; }

 private:
  ConvNdOptions<axes> conv_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

using Conv1D = ConvND<1>;
using Conv2D = ConvND<2>;
using Conv3D = ConvND<3>;
using Conv1DOptions = ConvNDOptions<1>;
using Conv2DOptions = ConvNDOptions<2>;
using Conv3DOptions = ConvNDOptions<3>;

extern template class ConvND<1>;
extern template class ConvND<2>;
extern template class ConvND<3>;

}  // namespace lockstep::nn
