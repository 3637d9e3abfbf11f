// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/ops/conv.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct Conv3DOptions {
  Size3d kernel_size = 3;
  Size3d strides = 1;
  Padding padding = Padding::valid;
  Size3d dilations = 1;
  std::int64_t groups = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "conv3d";
};

// A convolution of volumes: activation(x * kernel + bias), [batch, depth, height, width, in] to
// [batch, out depth, out height, out width, out] (ops/conv.h). Variables: "<name>/kernel" [kernel
// depth, kernel height, kernel width, in / groups, out] and "<name>/bias" [out].
class LOCKSTEP_EXPORT Conv3D : public Layer {
 public:
  // Throws InvalidArgument for a channel count, kernel size, stride or dilation below 1, groups
  // that do not divide both channel counts, or a dtype that is not floating.
  Conv3D(std::int64_t in_channels, std::int64_t out_channels, const Conv3DOptions& options = {},
         SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[conv3d] ..." when x is not of rank 5, of other channels or not
  // floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[3] * conv_.groups; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[4]; }

 private:
  Conv3dOptions conv_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
