// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/activation.h>

#include <string>

namespace lockstep::nn {

// An elementwise function as an option of layers ({.activation = relu}), as a layer of its own and
// as a function: relu(x). Any other function is a layer as a lambda.
class LOCKSTEP_EXPORT Activation {
 public:
  constexpr Activation(lockstep::Activation kind = lockstep::Activation::none)  // NOLINT: implicit
      : kind_(kind) {}
  constexpr operator lockstep::Activation() const { return kind_; }  // NOLINT: the ops' option

  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const {
    return activate(x, kind_, at);
  }
  std::string name() const;
  std::int64_t output_size(std::int64_t input_size) const { return input_size; }

 private:
  lockstep::Activation kind_;
};

inline constexpr Activation linear{lockstep::Activation::none};
inline constexpr Activation relu{lockstep::Activation::relu};
inline constexpr Activation tanh{lockstep::Activation::tanh};
inline constexpr Activation sigmoid{lockstep::Activation::sigmoid};
inline constexpr Activation gelu{lockstep::Activation::gelu};
inline constexpr Activation gelu_tanh{lockstep::Activation::gelu_tanh};
inline constexpr Activation silu{lockstep::Activation::silu};
inline constexpr Activation elu{lockstep::Activation::elu};
inline constexpr Activation softplus{lockstep::Activation::softplus};

}  // namespace lockstep::nn
