// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <string>
#include <vector>

namespace lockstep::nn {

struct ReshapeOptions {
  std::string name = "reshape";
};

// Each example in another shape: [batch, ..] to [batch] + target_shape, of which one extent may be
// -1: what is left.
class LOCKSTEP_EXPORT Reshape : public Layer {
 public:
  // Throws InvalidArgument for an extent below 1 other than one -1.
  explicit Reshape(std::vector<std::int64_t> target_shape, const ReshapeOptions& options = {},
                   SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[reshape] ..." when an example has another number of elements.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  std::int64_t output_size(std::int64_t) const;

 private:
  std::vector<std::int64_t> target_shape_;
};

}  // namespace lockstep::nn
