// SPDX-License-Identifier: Apache-2.0
// Layers of sequences give what Keras's give, and continue as by the formulas
// (tests/golden/sequences.py).
#include <lockstep/nn/gru.h>
#include <lockstep/nn/lstm.h>
#include <lockstep/nn/multi_head_attention.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/golden.h"

namespace lockstep::nn {
namespace {

std::int64_t last_axis(const Json& one, std::size_t input) {
  return one.at("inputs").at(input).at("shape").back();
}

Activation named_activation(const std::string& name) {
  for (const Activation known : {tanh, sigmoid, silu})
    if (known.name() == name) return known;
  throw std::invalid_argument(name);
}

template <class Options>
Options recurrent_options(const Json& one) {
  const Json& o = one.at("options");
  Options options;
  options.return_sequences = o.value("return_sequences", false);
  options.go_backwards = o.value("go_backwards", false);
  options.activation = named_activation(o.value("activation", "tanh"));
  options.recurrent_activation = named_activation(o.value("recurrent_activation", "sigmoid"));
  options.use_bias = o.value("use_bias", true);
  options.dtype = golden_dtype(one);
  return options;
}

// A mask as nested lists.
Tensor mask_of(const Json& call, const char* name) {
  if (!call.contains(name)) return {};
  std::vector<std::int64_t> extents, flags;
  const Json flat = call.at(name).flatten();
  for (const Json* level = &call.at(name); level->is_array(); level = &level->at(0))
    extents.push_back(static_cast<std::int64_t>(level->size()));
  for (const auto& [path, value] : flat.items()) flags.push_back(value.get<bool>());
  return cast(Tensor(Shape(extents), std::span<const std::int64_t>(flags)), DType::boolean);
}

GoldenLayer lstm(const Json& one) {
  auto options = recurrent_options<LSTMOptions>(one);
  options.unit_forget_bias = one.at("options").value("unit_forget_bias", true);
  const LSTM layer(last_axis(one, 0), one.at("options").at("units"), options);
  return {[layer, mask = mask_of(one.at("call"), "mask")](const std::vector<Tensor>& inputs,
                                                          CallOptions) {
            if (inputs.size() == 1) return layer.with_state(inputs[0], {.mask = mask}).output;
            const auto [output, state] =
                layer.with_state(inputs[0], {.initial_state = {inputs[1], inputs[2]}});
            return concat({output, state.hidden, state.cell}, -1);
          },
          layer.variables()};
}

GoldenLayer gru(const Json& one) {
  auto options = recurrent_options<GRUOptions>(one);
  options.reset_after = one.at("options").value("reset_after", true);
  const GRU layer(last_axis(one, 0), one.at("options").at("units"), options);
  return {[layer, mask = mask_of(one.at("call"), "mask")](const std::vector<Tensor>& inputs,
                                                          CallOptions) {
            if (inputs.size() == 1) return layer.with_state(inputs[0], {.mask = mask}).output;
            const auto [output, state] = layer.with_state(inputs[0], {.initial_state = inputs[1]});
            return concat({output, state}, -1);
          },
          layer.variables()};
}

GoldenLayer attention(const Json& one) {
  const Json& o = one.at("options");
  const MultiHeadAttention layer(last_axis(one, 0), o.at("num_heads"),
                                 {.key_dim = o.at("key_dim"),
                                  .value_dim = o.value("value_dim", std::int64_t{0}),
                                  .context_size = last_axis(one, 1),
                                  .output_size = o.value("output_shape", std::int64_t{0}),
                                  .causal = one.at("call").value("use_causal_mask", false),
                                  .use_bias = o.value("use_bias", true),
                                  .dtype = golden_dtype(one)});
  return {[layer, mask = mask_of(one.at("call"), "attention_mask")](
              const std::vector<Tensor>& inputs, CallOptions) {
            const Tensor key = inputs.size() > 2 ? inputs[2] : Tensor();
            return layer.attend(inputs.at(0), inputs.at(1), {.key = key, .mask = mask});
          },
          layer.variables()};
}

TEST(GoldenSequences, LSTMGivesWhatKerasGives) { expect_golden_fixture("lstm", lstm); }
TEST(GoldenSequences, GRUGivesWhatKerasGives) { expect_golden_fixture("gru", gru); }
TEST(GoldenSequences, AttentionGivesWhatKerasGives) {
  expect_golden_fixture("multiheadattention", attention);
}

// Position by position from a cache, with and without rotary embeddings.
TEST(GoldenSequences, AttentionContinuesByTheFormula) {
  const Json all = golden_fixture("generation");
  ASSERT_FALSE(all.at("cases").empty());
  for (const Json& one : all.at("cases")) {
    const Json& o = one.at("options");
    SCOPED_TRACE(o.dump());
    const Tensor x =
        golden_tensor(one.at("input").at("values"), one.at("input").at("shape"), DType::f64);
    const std::int64_t heads = o.at("num_heads"),
                       columns = one.at("weights").at(1).at("shape").at(0);
    MultiHeadAttentionOptions options{
        .key_dim = columns / heads, .causal = true, .dtype = DType::f64};
    if (!o.at("base").is_null()) options.rotary = {.base = o.at("base")};
    const MultiHeadAttention layer(x.dim(2), heads, options);
    set_golden_weights(one, golden_layer(layer));
    KeyValueCache cache = layer.make_cache(1, x.dim(1));
    std::vector<Tensor> parts;
    for (const Tensor& position : split(x, static_cast<int>(x.dim(1)), 1))
      parts.push_back(layer.extend(position, cache));
    expect_golden_values(concat(parts, 1), one.at("output"), 1e-9, "continued");
    expect_golden_values(layer(x), one.at("output"), 1e-9, "at once");
  }
}

}  // namespace
}  // namespace lockstep::nn
