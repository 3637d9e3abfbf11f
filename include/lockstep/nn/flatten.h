// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <string>

namespace lockstep::nn {

// All axes of an example as one: [batch, ..] to [batch, elements of an example].
class LOCKSTEP_EXPORT Flatten : public Layer {
 public:
  explicit Flatten(std::string name = "flatten", SourceLocation at = SourceLocation::current())
      : Layer(std::move(name), at) {}

  // Throws InvalidArgument "[flatten] ..." for a scalar.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  std::int64_t output_size(std::int64_t) const { return kAnySize; }
};

}  // namespace lockstep::nn
