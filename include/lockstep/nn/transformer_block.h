// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/feed_forward.h>
#include <lockstep/nn/layer_norm.h>
#include <lockstep/nn/multi_head_attention.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct TransformerBlockOptions {
  std::int64_t hidden_size = 0;  // of the feed-forward part; 0: 4 size
  Activation activation = gelu;
  double dropout = 0;  // of the attention's probabilities and of both parts' results, in training
  bool causal = false;
  std::optional<RotaryEmbeddingOptions> rotary = {};
  double norm_epsilon = 1e-5;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "transformer_block";
};

// A layer of a transformer with normalisation before its parts (Xiong et al., arXiv:2002.04745):
//
//   y = x + attention(norm(x));  y + feed_forward(norm(y))
//
// of x [batch, positions, size]. Causal ones, one after the other, are a GPT. Its parts' variables
// are below "<name>/attention_norm", "attention", "feed_forward_norm" and "feed_forward".
class LOCKSTEP_EXPORT TransformerBlock : public Layer {
 public:
  // Throws InvalidArgument as MultiHeadAttention, and for a negative epsilon.
  TransformerBlock(std::int64_t size, std::int64_t num_heads,
                   const TransformerBlockOptions& options = {},
                   SourceLocation at = SourceLocation::current());

  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;
  // With a mask as MultiHeadAttention's, for self-attention.
  Tensor attend(const Tensor& x, const AttendOptions& options,
                SourceLocation at = SourceLocation::current()) const;

  // As MultiHeadAttention's.
  KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity,
                           SourceLocation at = SourceLocation::current()) const {
    return attention_.make_cache(batch, capacity, at);
  }
  Tensor extend(const Tensor& x, KeyValueCache& cache,
                SourceLocation at = SourceLocation::current()) const;

  void rename(const std::string& name);
  std::int64_t input_size() const { return attention_.input_size(); }
  std::int64_t output_size(std::int64_t) const { return input_size(); }

 private:
  Tensor finish(const Tensor& x, const Tensor& attended, CallOptions options,
                SourceLocation at) const;

  LayerNorm attention_norm_;
  MultiHeadAttention attention_;
  LayerNorm feed_forward_norm_;
  FeedForward feed_forward_;
  Dropout dropout_;
};

}  // namespace lockstep::nn
