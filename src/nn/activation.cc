// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/activation.h>

namespace lockstep::nn {

std::string Activation::name() const {
  switch (kind_) {
    case lockstep::Activation::none:
      return "linear";
    case lockstep::Activation::relu:
      return "relu";
    case lockstep::Activation::tanh:
      return "tanh";
    case lockstep::Activation::sigmoid:
      return "sigmoid";
    case lockstep::Activation::gelu:
      return "gelu";
    case lockstep::Activation::gelu_tanh:
      return "gelu_tanh";
    case lockstep::Activation::silu:
      return "silu";
    case lockstep::Activation::elu:
      return "elu";
    case lockstep::Activation::softplus:
      return "softplus";
  }
  return "activation";
}

}  // namespace lockstep::nn
