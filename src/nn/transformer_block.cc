// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer_block.h>
#include <lockstep/ops/elementwise.h>

namespace lockstep::nn {
namespace {

LayerNormOptions norm_options(const TransformerBlockOptions& options, const char* role) {
  return {
      .epsilon = options.norm_epsilon, .dtype = options.dtype, .name = options.name + "/" + role};
}

MultiHeadAttentionOptions attention_options(const TransformerBlockOptions& options) {
  return {.causal = options.causal,
          .rotary = options.rotary,
          .dropout = options.dropout,
          .use_bias = options.use_bias,
          .kernel_initializer = options.kernel_initializer,
          .dtype = options.dtype,
          .name = options.name + "/attention"};
}

FeedForwardOptions feed_forward_options(const TransformerBlockOptions& options) {
  return {.activation = options.activation,
          .dropout = options.dropout,
          .use_bias = options.use_bias,
          .kernel_initializer = options.kernel_initializer,
          .dtype = options.dtype,
          .name = options.name + "/feed_forward"};
}

std::int64_t hidden_size(std::int64_t size, const TransformerBlockOptions& options) {
  return options.hidden_size == 0 ? 4 * size : options.hidden_size;
}

}  // namespace

TransformerBlock::TransformerBlock(std::int64_t size, std::int64_t num_heads,
                                   const TransformerBlockOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      attention_norm_(size, norm_options(options, "attention_norm"), at),
      attention_(size, num_heads, attention_options(options), at),
      feed_forward_norm_(size, norm_options(options, "feed_forward_norm"), at),
      feed_forward_(size, hidden_size(size, options), feed_forward_options(options), at),
      dropout_(options.dropout, options.name + "/dropout", at) {
  for (const Layer* layer : std::initializer_list<const Layer*>{
           &attention_norm_, &attention_, &feed_forward_norm_, &feed_forward_})
    for (const Variable& variable : layer->variables()) adopt(variable);
}

Tensor TransformerBlock::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  return attend(x, {.training = options.training}, at);
}

Tensor TransformerBlock::attend(const Tensor& x, const AttendOptions& options,
                                SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  const Tensor normal = attention_norm_(input, {}, at);
  return finish(input, attention_.attend(normal, normal, options, at),
                {.training = options.training}, at);
}

Tensor TransformerBlock::extend(const Tensor& x, KeyValueCache& cache, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 3, .max_rank = 3, .size = input_size()}, at);
  return finish(input, attention_.extend(attention_norm_(input, {}, at), cache, at), {}, at);
}

Tensor TransformerBlock::finish(const Tensor& x, const Tensor& attended, CallOptions options,
                                SourceLocation at) const {
  const Tensor y = add(Operand(x, at), dropout_(attended, options, at));
  return add(Operand(y, at), feed_forward_(feed_forward_norm_(y, {}, at), options, at));
}

void TransformerBlock::rename(const std::string& name) {
  set_name(name);
  attention_norm_.rename(name + "/attention_norm");
  feed_forward_norm_.rename(name + "/feed_forward_norm");
  attention_.rename(name + "/attention");
  feed_forward_.rename(name + "/feed_forward");
  dropout_.rename(name + "/dropout");
}

}  // namespace lockstep::nn
