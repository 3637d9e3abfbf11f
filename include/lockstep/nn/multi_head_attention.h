// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/dense.h>
#include <lockstep/nn/dropout.h>
#include <lockstep/nn/rotary_embedding.h>

#include <optional>
#include <string>

namespace lockstep::nn {

// What causal self-attention keeps of the positions it has seen, so that a sequence is continued
// without computing them again. A nest: it can be an argument and a result of a step.
struct KeyValueCache {
  Tensor keys, values;  // [batch, heads, capacity, dim]: zeros from `length` on
  Tensor length;        // positions seen, an i64 scalar
};

struct MultiHeadAttentionOptions {
  std::int64_t key_dim = 0;       // of a head's queries and keys; 0: size / num_heads
  std::int64_t value_dim = 0;     // of a head's values; 0: key_dim
  std::int64_t context_size = 0;  // of what is attended to, its last axis; 0: size
  std::int64_t output_size = 0;   // 0: size
  bool causal = false;            // position i sees positions up to i only
  std::optional<RotaryEmbeddingOptions> rotary = {};  // turns queries and keys by their positions
  double dropout = 0;                                 // of the probabilities, in training
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "multi_head_attention";
};

struct AttendOptions {
  Tensor key = {};  // what keys are made of; undefined: the value
  // Boolean, true where a query sees a key, or added to the products: [batch, queries, keys], with
  // an axis of heads before the last two, or what broadcasts to that (ops/attention.h).
  Tensor mask = {};
  bool training = false;
};

// Multi-head attention (Vaswani et al., arXiv:1706.03762), Keras's MultiHeadAttention: each head
// takes its own projections of queries, keys and values, scores them by q k' / sqrt(key_dim), and the
// heads' results together are projected to the output. A query that sees no key gets zeros from its
// heads. Variables: "<name>/query/kernel" [size, num_heads key_dim], the same for "key", "value" and
// "attention_output", and their biases; head h has the h-th block of columns.
class LOCKSTEP_EXPORT MultiHeadAttention : public Layer {
 public:
  // Throws InvalidArgument for sizes below 1, a key_dim that is not given where num_heads does not
  // divide size, an odd one with rotary, a dropout outside [0, 1), or a dtype that is not floating.
  MultiHeadAttention(std::int64_t size, std::int64_t num_heads,
                     const MultiHeadAttentionOptions& options = {},
                     SourceLocation at = SourceLocation::current());

  // Self-attention of x [batch, positions, size]: [batch, positions, output_size]. Throws
  // InvalidArgument "[<name>] ..." for an x that does not fit.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;
  // Of queries [batch, queries, size] to values, and keys, [batch, keys, context_size]. Throws as the
  // call, and for another batch of values or keys and a mask that does not broadcast.
  Tensor attend(const Tensor& query, const Tensor& value, const AttendOptions& options = {},
                SourceLocation at = SourceLocation::current()) const;

  // A cache without positions, with room for `capacity`. Throws InvalidArgument for negative numbers.
  KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity,
                           SourceLocation at = SourceLocation::current()) const;
  // Causal self-attention of x [batch, positions, size], which come after those in the cache, to both;
  // they are added to the cache. The same as the call would give for all positions at once. On CPUs
  // positions beyond the capacity are InvalidArgument; where nobody can be told they are not added.
  // Throws FailedPrecondition unless the layer is causal, InvalidArgument for an x that does not fit
  // and a cache that make_cache() of this layer does not make for x's batch.
  Tensor extend(const Tensor& x, KeyValueCache& cache,
                SourceLocation at = SourceLocation::current()) const;

  void rename(const std::string& name);
  std::int64_t num_heads() const { return num_heads_; }
  std::int64_t input_size() const { return query_.input_size(); }
  std::int64_t output_size(std::int64_t) const { return output_.output_size(kAnySize); }

 private:
  // Of a cache's keys or values, whichever the layer projects to.
  Shape shape_of_cached(const Dense& layer, std::int64_t batch, std::int64_t capacity,
                        SourceLocation at) const;
  void require_cache(const KeyValueCache& cache, std::int64_t batch, SourceLocation at) const;
  // [batch, positions, heads dim] to [batch, heads, positions, dim], and back.
  Tensor split_heads(const Tensor& x) const;
  static Tensor join_heads(const Tensor& x);
  Tensor mix(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& options,
             SourceLocation at) const;

  std::int64_t num_heads_;
  bool causal_;
  Dense query_, key_, value_, output_;
  std::optional<RotaryEmbedding> rotary_;
  Dropout dropout_;
  bool drops_;
};

}  // namespace lockstep::nn
