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
struct ConvNDTransposeOptions {
  SizeNd<axes> kernel_size = 3;
  SizeNd<axes> strides = 1;
  Padding padding = Padding::valid;
  // Unset: TensorFlow's extents, in * stride with padding `same`. Otherwise as in Keras
  // (in - 1) * stride + span - 2 * (span / 2 with `same`, 0 with `valid`) + output_padding, where
  // span is (kernel size - 1) * dilation + 1; at least 0 and below the stride.
  std::optional<SizeNd<axes>> output_padding = {};
  SizeNd<axes> dilations = 1;
  std::int64_t groups = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = {};  // empty: "conv1d_transpose", "conv2d_transpose", "conv3d_transpose"
};

// The transposed convolution, also called deconvolution: the input gradient of a convolution with
// this kernel and these options, plus bias, [batch, extents.., in] to [batch, out extents.., out],
// where the extents are width, or height and width, or depth, height and width (ops/conv.h).
// Variables: "<name>/kernel" [kernel extents.., out / groups, in] and "<name>/bias" [out].
template <int axes>
class LOCKSTEP_EXPORT ConvNDTranspose : public Layer {
 public:
  // Throws InvalidArgument for a channel count, kernel size, stride or dilation below 1, groups
  // that do not divide both channel counts, an output padding that is negative or not below its
  // stride or beside a given padding, or a dtype that is not floating.
  ConvNDTranspose(std::int64_t in_channels, std::int64_t out_channels,
                  const ConvNDTransposeOptions<axes>& options = {},
                  SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[<name>] ..." when x is not of rank axes + 2, of other channels or not
  // floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[axes + 1]; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[axes] * conv_.groups; }

 private:
  ConvNdTransposeOptions<axes> conv_;
  SizeNd<axes> kernel_size_;
  std::optional<SizeNd<axes>> output_padding_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

using Conv1DTranspose = ConvNDTranspose<1>;
using Conv2DTranspose = ConvNDTranspose<2>;
using Conv3DTranspose = ConvNDTranspose<3>;
using Conv1DTransposeOptions = ConvNDTransposeOptions<1>;
using Conv2DTransposeOptions = ConvNDTransposeOptions<2>;
using Conv3DTransposeOptions = ConvNDTransposeOptions<3>;

extern template class ConvNDTranspose<1>;
extern template class ConvNDTranspose<2>;
extern template class ConvNDTranspose<3>;

}  // namespace lockstep::nn
