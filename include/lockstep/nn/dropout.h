// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <string>

namespace lockstep::nn {

// In training, each element is set to zero with probability `rate` and the others are divided by
// 1 - rate, so that the expected value stays (Srivastava et al., 2014); otherwise x itself. Numbers
// are drawn from the replica's random state: replicas draw different masks, reruns the same ones.
class LOCKSTEP_EXPORT Dropout : public Layer {
 public:
  // Throws InvalidArgument unless 0 <= rate < 1.
  explicit Dropout(double rate, std::string name = "dropout",
                   SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[dropout] ..." for a dtype that is not floating.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  double rate_;
};

}  // namespace lockstep::nn
