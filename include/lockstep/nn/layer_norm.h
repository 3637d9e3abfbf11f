// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct LayerNormOptions {
  double epsilon = 1e-3;  // added to the variance
  bool center = true;     // learns an offset, beta
  bool scale = true;      // learns a factor, gamma
  Initializer beta_initializer = zeros;
  Initializer gamma_initializer = ones;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "layer_norm";
};

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, the last axis of x [.., features], or the
// last axes, each row by itself (arXiv:1607.06450, ops/norm.h). Variables: "<name>/gamma" and
// "<name>/beta" of the shape of those axes, f32 where x is of 16 bits.
class LOCKSTEP_EXPORT LayerNorm : public Layer {
 public:
  // Throws InvalidArgument for sizes below 1, no axis, an epsilon below 0, or a dtype that is not
  // floating.
  explicit LayerNorm(std::int64_t features, const LayerNormOptions& options = {},
                     SourceLocation at = SourceLocation::current());
  // Over as many of the last axes as `shape` has, which are so long.
  explicit LayerNorm(const Shape& shape, const LayerNormOptions& options = {},
                     SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[layer_norm] ..." when the last axes of x are not these or x is of
  // another dtype.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const std::optional<Variable>& gamma() const { return gamma_; }
  const std::optional<Variable>& beta() const { return beta_; }
  std::int64_t input_size() const { return shape_.dim(-1); }
  std::int64_t output_size(std::int64_t) const { return shape_.dim(-1); }

 private:
  Shape shape_;
  double epsilon_;
  std::optional<Variable> gamma_, beta_;
};

}  // namespace lockstep::nn
