// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/dense.h>
#include <lockstep/nn/dropout.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct FeedForwardOptions {
  Activation activation = gelu;
  double dropout = 0;  // of the result, in training
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "feed_forward";
};

// The part of a transformer that works on each position by itself: activation(x W1 + b1) W2 + b2, from
// `size` to `hidden_size` and back. Variables: "<name>/inner/kernel", "<name>/outer/kernel" and the
// biases, as Dense's.
class LOCKSTEP_EXPORT FeedForward : public Layer {
 public:
  // Throws InvalidArgument as Dense and Dropout.
  FeedForward(std::int64_t size, std::int64_t hidden_size, const FeedForwardOptions& options = {},
              SourceLocation at = SourceLocation::current());

  // As Dense's.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;

  void rename(const std::string& name);
  std::int64_t input_size() const { return inner_.input_size(); }
  std::int64_t output_size(std::int64_t) const { return input_size(); }

 private:
  Dense inner_, outer_;
  Dropout dropout_;
};

}  // namespace lockstep::nn
