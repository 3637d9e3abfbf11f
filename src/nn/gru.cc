// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/gru.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/recurrence.h"

namespace lockstep::nn {
namespace {

struct Weights {
  Tensor kernel, bias;  // those of the state
  Activation activation, gate;
};

std::vector<Tensor> mixed(const Tensor& z, const Tensor& h, const Tensor& candidate) {
  return {z * h + (1 - z) * candidate};
}

Cell reset_after(const Weights& w) {
  return [w](const Tensor& projected, const std::vector<Tensor>& state) {
    const Tensor& h = state[0];
    const auto x = split(projected, 3, -1), of_state = split(dense(h, w.kernel, w.bias), 3, -1);
    const Tensor z = w.gate(x[0] + of_state[0]), r = w.gate(x[1] + of_state[1]);
    return mixed(z, h, w.activation(x[2] + r * of_state[2]));
  };
}

Cell reset_before(const Weights& w) {
  const std::int64_t units = w.kernel.dim(0);
  const auto kernels = split(w.kernel, {2 * units, units}, 1);
  return [w, kernels, units](const Tensor& projected, const std::vector<Tensor>& state) {
    const Tensor& h = state[0];
    const auto x = split(projected, {2 * units, units}, -1);
    const auto gates = split(w.gate(x[0] + matmul(h, kernels[0])), 2, -1);
    return mixed(gates[0], h, w.activation(x[1] + matmul(gates[1] * h, kernels[1])));
  };
}

}  // namespace

GRU::GRU(std::int64_t in, std::int64_t units, const GRUOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      options_(options),
      kernel_(
          add_variable("kernel", gates_shape("GRU", in, units, 3, at), options.kernel_initializer)),
      recurrent_kernel_(
          add_variable("recurrent_kernel", {units, 3 * units}, options.recurrent_initializer)) {
  if (options.use_bias)
    bias_ = add_variable("bias", options.reset_after ? Shape{2, 3 * units} : Shape{3 * units},
                         options.bias_initializer);
}

Tensor GRU::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  return with_state(x, {}, at).output;
}

GRU::Result GRU::with_state(const Tensor& x, const GRUCall& call, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  Tensor bias = weight(bias_, at);
  Weights weights{.kernel = weight(recurrent_kernel_, at),
                  .bias = {},
                  .activation = options_.activation,
                  .gate = options_.recurrent_activation};
  if (bias_ && options_.reset_after) {
    const auto biases = unstack(bias);
    bias = biases[0];
    weights.bias = biases[1];
  }
  Walked walked = walk({.layer = name(),
                        .units = output_size(kAnySize),
                        .return_sequences = options_.return_sequences,
                        .go_backwards = options_.go_backwards},
                       input, weight(kernel_, at), bias, {call.initial_state}, call.mask,
                       options_.reset_after ? reset_after(weights) : reset_before(weights), at);
  return {walked.output, walked.state[0]};
}

}  // namespace lockstep::nn
