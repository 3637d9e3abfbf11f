// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct GroupNormOptions {
  std::int64_t groups = 32;  // divides the channels; one per channel: instance norm
  double epsilon = 1e-3;     // added to the variance
  bool center = true;        // learns an offset, beta
  bool scale = true;         // learns a factor, gamma
  Initializer beta_initializer = zeros;
  Initializer gamma_initializer = ones;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "group_norm";
};

// (x - mean) / sqrt(variance + epsilon) * gamma + beta of x [batch, .., channels], each group of
// neighbouring channels of each example by itself (arXiv:1803.08494, ops/norm.h). Variables:
// "<name>/gamma" and "<name>/beta" [channels], f32 where x is of 16 bits.
class LOCKSTEP_EXPORT GroupNorm : public Layer {
 public:
  // Throws InvalidArgument for channels below 1, groups that do not divide them, an epsilon below
  // 0, or a dtype that is not floating.
  explicit GroupNorm(std::int64_t channels, const GroupNormOptions& options = {},
                     SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[group_norm] ..." when x is of rank below 2, of other channels or
  // another dtype.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const std::optional<Variable>& gamma() const { return gamma_; }
  const std::optional<Variable>& beta() const { return beta_; }
  std::int64_t input_size() const { return channels_; }
  std::int64_t output_size(std::int64_t) const { return channels_; }

 private:
  std::int64_t channels_, groups_;
  double epsilon_;
  std::optional<Variable> gamma_, beta_;
};

}  // namespace lockstep::nn
