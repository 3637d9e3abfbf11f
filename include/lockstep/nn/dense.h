// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct DenseOptions {
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "dense";
};

// A fully connected layer: activation(x kernel + bias) on the last axis, [.., in] to [.., out].
// Variables: "<name>/kernel" [in, out] and "<name>/bias" [out].
class LOCKSTEP_EXPORT Dense : public Layer {
 public:
  // Throws InvalidArgument for a size below 1 or a dtype that is not floating.
  Dense(std::int64_t in, std::int64_t out, const DenseOptions& options = {},
        SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[dense] ..." when x is of rank below 2, another size or not floating, and
  // for f64 where the layer computes in less.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& kernel() const { return kernel_; }
  const std::optional<Variable>& bias() const { return bias_; }
  std::int64_t input_size() const { return kernel_.shape()[0]; }
  std::int64_t output_size(std::int64_t) const { return kernel_.shape()[1]; }

 private:
  Activation activation_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
