// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/activation.h>
#include <lockstep/ops/elementwise.h>

#include "ops/result.h"

namespace lockstep {

Tensor activate(const Tensor& x, Activation activation, SourceLocation at) {
  require_defined("activate", "x", x, at);
  require_dtype(is_floating(x.dtype()), "activate", x, "a floating dtype", at);
  switch (activation) {
    case Activation::relu:
      return relu(x, at);
    case Activation::tanh:
      return tanh(x, at);
    case Activation::sigmoid:
      return sigmoid(x, at);
    case Activation::gelu:
      return gelu(x, at);
    case Activation::gelu_tanh:
      return gelu_tanh(x, at);
    case Activation::silu:
      return silu(x, at);
    case Activation::elu:
      return elu(x, at);
    case Activation::softplus:
      return softplus(x, at);
    case Activation::none:
      break;
  }
  return x;
}

}  // namespace lockstep
