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
  }
  return "activation";
}

}  // namespace lockstep::nn
