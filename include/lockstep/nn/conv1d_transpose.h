// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/ops/conv.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct Conv1DTransposeOptions {
  std::int64_t kernel_size = 3;
  std::int64_t strides = 1;
  Padding padding = Padding::valid;
  // Unset: TensorFlow's extents, in * stride with padding `same`. Otherwise as in Keras
  // (in - 1) * stride + span - 2 * (span / 2 with `same`, 0 with `valid`) + output_padding, where
  // span is (kernel size - 1) * dilation + 1; at least 0 and below the stride.
  std::optional<std::int64_t> output_padding = {};
  std::int64_t dilations = 1;
  std::int64_t groups = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "conv1d_transpose";
};

// The transposed convolution, also called deconvolution: the input gradient of a convolution with
// this kernel and these options, plus bias, [batch, width, in] to [batch, out width, out]
// (ops/conv.h). Variables: "<name>/kernel" [kernel width, out / groups, in] and "<name>/bias"
// [out].
class LOCKSTEP_EXPORT Conv1DTranspose : public Layer {
 public:
  // Throws InvalidArgument for a channel count, kernel size, stride or dilation below 1, groups
  // that do not divide both channel counts, an output padding that is negative or not below its
  // stride or beside a given padding, or a dtype that is not floating.
  Conv1DTranspose(std::int64_t in_channels, std::int64_t out_channels,
                  const Conv1DTransposeOptions& options = {},
                  SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[conv1d_transpose] ..." when x is not of rank 3, of other channels or
  // not floating, and for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[2]; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[1] * conv_.groups; }

 private:
  Conv1dTransposeOptions conv_;
  std::int64_t kernel_size_;
  std::optional<std::int64_t> output_padding_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
