// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>
#include <lockstep/tensor/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::nn {

// The shape of the kernel of `gates` gates. Throws InvalidArgument for a size below 1.
Shape gates_shape(const char* layer, std::int64_t in, std::int64_t units, std::int64_t gates,
                  SourceLocation at);

// What a recurrent layer computes at one time: from its projected input [batch, n] and its state, of
// which the first tensor is also its output, the next state.
using Cell =
    std::function<std::vector<Tensor>(const Tensor& projected, const std::vector<Tensor>& state)>;

struct Walk {
  std::string layer;  // named by errors
  std::int64_t units = 0;
  bool return_sequences = false;
  bool go_backwards = false;
};

struct Walked {
  Tensor output;  // the last one, or [batch, steps, units] in the order of the walk
  std::vector<Tensor> state;
};

// Takes a cell along the steps of x [batch, steps, in], which are projected all at once to x kernel +
// bias. Where the mask, boolean [batch, steps] or undefined, is false, state and output stay what they
// were (the output is zeros at first). Undefined states begin as zeros. Throws InvalidArgument for an x
// without steps, another mask, and states that are not [batch, units] of the dtype of x.
Walked walk(const Walk& how, const Tensor& x, const Tensor& kernel, const Tensor& bias,
            std::vector<Tensor> state, const Tensor& mask, const Cell& cell, SourceLocation at);

}  // namespace lockstep::nn
