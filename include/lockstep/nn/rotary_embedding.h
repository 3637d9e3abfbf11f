// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <string>

namespace lockstep::nn {

struct RotaryEmbeddingOptions {
  double base = 10000;  // wavelengths go from 2 pi to 2 pi base
  std::string name = "rotary_embedding";
};

// Rotates vectors by their positions, so that products of queries and keys depend on distances only
// (Su et al., arXiv:2104.09864, equation 34): of x [.., positions, dim], the neighbours x[2i] and
// x[2i + 1] at position p are turned by the angle p base^(-2i / dim). No variables.
class LOCKSTEP_EXPORT RotaryEmbedding : public Layer {
 public:
  // Throws InvalidArgument unless the base is positive and finite.
  explicit RotaryEmbedding(const RotaryEmbeddingOptions& options = {},
                           SourceLocation at = SourceLocation::current());

  // The positions are 0, 1, ... Throws InvalidArgument "[<name>] ..." when x is of rank below 2, of
  // a dtype that is not floating or of an odd last axis.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;
  // The same from position `first` on, an integer scalar.
  Tensor from(const Tensor& first, const Tensor& x,
              SourceLocation at = SourceLocation::current()) const;

 private:
  double base_;
};

}  // namespace lockstep::nn
