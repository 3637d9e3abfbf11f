// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/sequential.h>

namespace lockstep::nn {

// x + f(x), in the dtype of f(x), f being layers in a row (He et al., arXiv:1512.03385): Residual{Dense(8, 8), Dropout(0.1)}.
// The variables are those of the layers, below "residual".
class LOCKSTEP_EXPORT Residual : public Layer {
 public:
  // Throws InvalidArgument when the layers, as in Sequential, do not fit together or do not give the
  // size that they take.
  template <LayerLike... Layers>
    requires(sizeof...(Layers) > 1 || !(std::same_as<Layers, Residual> && ...))
  Residual(Layers... layers)  // NOLINT: reads as a list
      : Residual(std::in_place, Sequential(std::move(layers)...)) {}
  Residual(const Residual&) = default;  // a move is a copy
  Residual& operator=(const Residual&) = default;

  // Throws InvalidArgument "[<name>] ..." when f(x) has another shape than x.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;

  void rename(const std::string& name);
  std::int64_t input_size() const { return layers_.input_size(); }
  std::int64_t output_size(std::int64_t input_size) const {
    return layers_.output_size(input_size);
  }

 private:
  Residual(std::in_place_t, Sequential layers);

  Sequential layers_;
};

}  // namespace lockstep::nn
