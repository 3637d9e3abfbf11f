// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct RMSNormOptions {
  double epsilon = 1e-6;  // added to the mean square
  Initializer scale_initializer = ones;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "rms_norm";
};

// x / sqrt(mean(x^2) + epsilon) * scale, the last axis of x [.., features], each row by itself
// (arXiv:1910.07467, ops/norm.h). Variable: "<name>/scale" [features], f32 where x is of 16 bits.
class LOCKSTEP_EXPORT RMSNorm : public Layer {
 public:
  // Throws InvalidArgument for features below 1, an epsilon below 0, or a dtype that is not
  // floating.
  explicit RMSNorm(std::int64_t features, const RMSNormOptions& options = {},
                   SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[rms_norm] ..." when x has other features or is of another dtype.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& scale() const { return scale_; }
  std::int64_t input_size() const { return scale_.shape()[0]; }
  std::int64_t output_size(std::int64_t) const { return scale_.shape()[0]; }

 private:
  double epsilon_;
  Variable scale_;
};

}  // namespace lockstep::nn
