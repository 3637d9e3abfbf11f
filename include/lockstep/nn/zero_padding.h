// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/window.h>

#include <string>

namespace lockstep::nn {

struct ZeroPaddingOptions {
  std::string name = "zero_padding";
};

// Zeros around sequences, images or volumes x [batch, .., channels], of as many axes as padding is
// given for: ZeroPadding({before, after}), ZeroPadding({top, bottom, left, right}),
// ZeroPadding({front, back, top, bottom, left, right}). Keras's ZeroPadding1D, 2D and 3D.
class LOCKSTEP_EXPORT ZeroPadding : public Layer {
 public:
  // Throws InvalidArgument for Padding::valid and same, and for negative numbers.
  explicit ZeroPadding(const Padding& padding, const ZeroPaddingOptions& options = {},
                       SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[zero_padding] ..." when x has another number of axes.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Padding padding_;
};

}  // namespace lockstep::nn
