// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/multi_head_attention.h>
#include <lockstep/ops/attention.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <limits>

#include "nn/position.h"

namespace lockstep::nn {
namespace {

using Options = MultiHeadAttentionOptions;

std::int64_t or_default(std::int64_t given, std::int64_t fallback) {
  return given == 0 ? fallback : given;
}

std::int64_t key_dim_of(std::int64_t size, std::int64_t num_heads, const Options& options,
                        SourceLocation at) {
  constexpr const char* kOp = "MultiHeadAttention";
  require(size > 0 && num_heads > 0, at, kOp,
          "expected a size and a number of heads of 1 or more, got ", size, " and ", num_heads);
  require(options.key_dim > 0 || (options.key_dim == 0 && size % num_heads == 0), at, kOp,
          "expected a key_dim of 1 or more, or a size that num_heads divides, got a size of ", size,
          ", ", num_heads, " heads and a key_dim of ", options.key_dim);
  const std::int64_t key_dim = or_default(options.key_dim, size / num_heads);
  require(!options.rotary || key_dim % 2 == 0, at, kOp,
          "expected an even key_dim with rotary, got ", key_dim);
  return key_dim;
}

Dense projection(std::int64_t in, std::int64_t out, const Options& options, const char* role,
                 SourceLocation at) {
  return Dense(in, out,
               {.use_bias = options.use_bias,
                .kernel_initializer = options.kernel_initializer,
                .bias_initializer = options.bias_initializer,
                .dtype = options.dtype,
                .name = options.name + "/" + role},
               at);
}

// What scaled_dot_product_attention does, with dropped probabilities.
Tensor attend_with_dropout(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                           bool causal, const Dropout& dropout, SourceLocation at) {
  constexpr double kFar = -1e30;  // finite, so that rows that see nothing stay numbers
  Tensor scores =
      matmul(q, k, {.transpose_b = true}, at) / std::sqrt(static_cast<double>(q.dim(-1)));
  Tensor seen;
  if (mask.defined() && mask.dtype() != DType::boolean) {
    scores = scores + mask;
    seen = not_equal(mask, -std::numeric_limits<double>::infinity());
  } else {
    seen = mask;
  }
  if (causal) {
    const Tensor past = less_equal(range(0, k.dim(-2)), expand_dims(range(0, q.dim(-2)), 1));
    seen = seen.defined() ? logical_and(seen, past) : past;
  }
  const Tensor probabilities =
      seen.defined() ? select(seen, softmax(select(seen, scores, kFar)), 0) : softmax(scores);
  return matmul(dropout(probabilities, {.training = true}, at), v, {}, at);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t size, std::int64_t num_heads,
                                       const Options& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      num_heads_(num_heads),
      causal_(options.causal),
      query_(projection(size, num_heads * key_dim_of(size, num_heads, options, at), options,
                        "query", at)),
      key_(projection(or_default(options.context_size, size), query_.output_size(kAnySize), options,
                      "key", at)),
      value_(projection(
          or_default(options.context_size, size),
          num_heads * or_default(options.value_dim, query_.output_size(kAnySize) / num_heads),
          options, "value", at)),
      output_(projection(value_.output_size(kAnySize), or_default(options.output_size, size),
                         options, "attention_output", at)),
      dropout_(options.dropout, options.name + "/dropout", at),
      drops_(options.dropout > 0) {
  if (options.rotary) rotary_.emplace(*options.rotary, at);
  for (const Dense* layer : {&query_, &key_, &value_, &output_})
    for (const Variable& variable : layer->variables()) adopt(variable);
}

void MultiHeadAttention::rename(const std::string& name) {
  set_name(name);
  query_.rename(name + "/query");
  key_.rename(name + "/key");
  value_.rename(name + "/value");
  output_.rename(name + "/attention_output");
  dropout_.rename(name + "/dropout");
}

Tensor MultiHeadAttention::split_heads(const Tensor& x) const {
  return transpose(reshape(x, {x.dim(0), x.dim(1), num_heads_, x.dim(2) / num_heads_}),
                   {0, 2, 1, 3});
}

Tensor MultiHeadAttention::join_heads(const Tensor& x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Tensor MultiHeadAttention::mix(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttendOptions& options, SourceLocation at) const {
  require(k.dim(0) == q.dim(0) && v.dim(0) == q.dim(0) && v.dim(2) == k.dim(2), at, name(),
          "expected a query, values and keys of one batch, and as many values as keys, got batches "
          "of ",
          q.dim(0), ", ", v.dim(0), " and ", k.dim(0), ", ", v.dim(2), " values and ", k.dim(2),
          " keys");
  Tensor mask = options.mask;
  require(!mask.defined() || mask.dtype() == DType::boolean || is_floating(mask.dtype()), at,
          name(), "expected a mask that is boolean or floating, got ", mask);
  if (mask.defined() && is_floating(mask.dtype())) mask = cast(mask, q.dtype(), at);
  if (mask.defined() && mask.rank() == 3) mask = expand_dims(mask, 1, at);
  const Shape scores = k.shape().with_dim(2, q.dim(2)).with_dim(3, k.dim(2));
  require(!mask.defined() || broadcast_shapes(mask.shape(), scores, name().c_str(), at) == scores,
          at, name(), "expected a mask that broadcasts to ", scores, ", got ", mask);
  const Tensor mixed = options.training && drops_
                           ? attend_with_dropout(q, k, v, mask, causal_, dropout_, at)
                           : scaled_dot_product_attention(q, k, v, mask, {.causal = causal_}, at);
  return output_(join_heads(mixed), {}, at);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, CallOptions options,
                                      SourceLocation at) const {
  return attend(x, x, {.training = options.training}, at);
}

Tensor MultiHeadAttention::attend(const Tensor& query, const Tensor& value,
                                  const AttendOptions& options, SourceLocation at) const {
  const Tensor& key = options.key.defined() ? options.key : value;
  check_input(query, {.min_rank = 3, .max_rank = 3}, at);
  check_input(value, {.min_rank = 3, .max_rank = 3}, at);
  check_input(key, {.min_rank = 3, .max_rank = 3}, at);
  Tensor q = split_heads(query_(query, {}, at)), k = split_heads(key_(key, {}, at));
  const Tensor v = split_heads(value_(value, {}, at));
  if (rotary_) {
    q = (*rotary_)(q, {}, at);
    k = (*rotary_)(k, {}, at);
  }
  return mix(q, k, v, options, at);
}

Shape MultiHeadAttention::shape_of_cached(const Dense& layer, std::int64_t batch,
                                          std::int64_t capacity, SourceLocation at) const {
  return Shape({batch, num_heads_, capacity, layer.output_size(kAnySize) / num_heads_}, at,
               name().c_str());
}

void MultiHeadAttention::require_cache(const KeyValueCache& cache, std::int64_t batch,
                                       SourceLocation at) const {
  const bool defined = cache.keys.defined() && cache.values.defined() && cache.keys.rank() == 4;
  const auto fits = [&](const Tensor& part, const Dense& layer) {
    return part.dtype() == policy().compute_dtype() &&
           part.shape() == shape_of_cached(layer, batch, cache.keys.dim(2), at);
  };
  require(defined && fits(cache.keys, key_) && fits(cache.values, value_), at, name(),
          "expected a cache of make_cache(", batch, ", capacity), which are ",
          name_of(policy().compute_dtype()), " keys ", shape_of_cached(key_, batch, 0, at),
          " and values ", shape_of_cached(value_, batch, 0, at), " but for the capacity, got ",
          cache.keys, " and ", cache.values);
}

KeyValueCache MultiHeadAttention::make_cache(std::int64_t batch, std::int64_t capacity,
                                             SourceLocation at) const {
  const auto room = [&](const Dense& layer) {
    return lockstep::zeros(shape_of_cached(layer, batch, capacity, at), policy().compute_dtype());
  };
  return {room(key_), room(value_), Tensor(std::int64_t{0})};
}

Tensor MultiHeadAttention::extend(const Tensor& x, KeyValueCache& cache, SourceLocation at) const {
  if (!causal_)
    throw FailedPrecondition(message(name(),
                                     "only a causal layer can be extended; make it with "
                                     "{.causal = true}"),
                             at);
  check_input(x, {.min_rank = 3, .max_rank = 3}, at);
  require_cache(cache, x.dim(0), at);
  const std::int64_t capacity = cache.keys.dim(2), added = x.dim(1);
  const Tensor positions = positions_from(cache.length, added, name(), at);
  Tensor q = split_heads(query_(x, {}, at)), k = split_heads(key_(x, {}, at));
  const Tensor v = split_heads(value_(x, {}, at));
  if (rotary_) {
    q = rotary_->from(cache.length, q, at);
    k = rotary_->from(cache.length, k, at);
  }
  KeyValueCache longer{
      .keys = add(Operand(cache.keys, at), scatter_add(positions, k, capacity, 2, at)),
      .values = add(Operand(cache.values, at), scatter_add(positions, v, capacity, 2, at)),
      .length = cache.length + added};
  const Tensor past = less_equal(range(0, capacity), expand_dims(positions, 1));
  const Tensor mixed = scaled_dot_product_attention(q, longer.keys, longer.values, past, {}, at);
  cache = std::move(longer);
  return output_(join_heads(mixed), {}, at);
}

}  // namespace lockstep::nn
