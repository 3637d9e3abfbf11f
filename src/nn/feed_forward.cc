// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/feed_forward.h>

namespace lockstep::nn {
namespace {

DenseOptions dense_options(const FeedForwardOptions& options, Activation activation,
                           const char* role) {
  return {.activation = activation,
          .use_bias = options.use_bias,
          .kernel_initializer = options.kernel_initializer,
          .bias_initializer = options.bias_initializer,
          .dtype = options.dtype,
          .name = options.name + "/" + role};
}

}  // namespace

FeedForward::FeedForward(std::int64_t size, std::int64_t hidden_size,
                         const FeedForwardOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      inner_(size, hidden_size, dense_options(options, options.activation, "inner"), at),
      outer_(hidden_size, size, dense_options(options, linear, "outer"), at),
      dropout_(options.dropout, options.name + "/dropout", at) {
  for (const Dense* layer : {&inner_, &outer_})
    for (const Variable& variable : layer->variables()) adopt(variable);
}

Tensor FeedForward::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  return dropout_(outer_(inner_(x, options, at), options, at), options, at);
}

void FeedForward::rename(const std::string& name) {
  set_name(name);
  inner_.rename(name + "/inner");
  outer_.rename(name + "/outer");
  dropout_.rename(name + "/dropout");
}

}  // namespace lockstep::nn
