// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/lstm.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/recurrence.h"

namespace lockstep::nn {
namespace {

Initializer bias_initializer(std::int64_t units, const LSTMOptions& options) {
  if (!options.unit_forget_bias) return options.bias_initializer;
  return [units, others = options.bias_initializer](const Shape&, DType dtype) {
    return concat({others({units}, dtype), ones({units}, dtype), others({2 * units}, dtype)}, 0);
  };
}

}  // namespace

LSTM::LSTM(std::int64_t in, std::int64_t units, const LSTMOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      options_(options),
      kernel_(add_variable("kernel", gates_shape("LSTM", in, units, 4, at),
                           options.kernel_initializer)),
      recurrent_kernel_(
          add_variable("recurrent_kernel", {units, 4 * units}, options.recurrent_initializer)) {
  if (options.use_bias) bias_ = add_variable("bias", {4 * units}, bias_initializer(units, options));
}

Tensor LSTM::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  return with_state(x, {}, at).output;
}

LSTM::Result LSTM::with_state(const Tensor& x, const LSTMCall& call, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  const Activation a = options_.activation, r = options_.recurrent_activation;
  const auto cell = [a, r, kernel = weight(recurrent_kernel_, at)](
                        const Tensor& projected,
                        const std::vector<Tensor>& state) -> std::vector<Tensor> {
    const auto gates = split(projected + matmul(state[0], kernel), 4, -1);
    const Tensor c = r(gates[1]) * state[1] + r(gates[0]) * a(gates[2]);
    return {r(gates[3]) * a(c), c};
  };
  Walked walked = walk({.layer = name(),
                        .units = output_size(kAnySize),
                        .return_sequences = options_.return_sequences,
                        .go_backwards = options_.go_backwards},
                       input, weight(kernel_, at), weight(bias_, at),
                       {call.initial_state.hidden, call.initial_state.cell}, call.mask, cell, at);
  return {walked.output, {walked.state[0], walked.state[1]}};
}

}  // namespace lockstep::nn
