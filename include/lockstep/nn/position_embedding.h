// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct PositionEmbeddingOptions {
  Initializer initializer = glorot_uniform;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "position_embedding";
};

// Adds a learned vector per position: x [.., positions, size] + embeddings[position]. Variable:
// "<name>/embeddings" [length, size].
class LOCKSTEP_EXPORT PositionEmbedding : public Layer {
 public:
  // `length` is the largest number of positions. Throws InvalidArgument for a size below 1 or a
  // dtype that is not floating.
  PositionEmbedding(std::int64_t length, std::int64_t size,
                    const PositionEmbeddingOptions& options = {},
                    SourceLocation at = SourceLocation::current());

  // The positions are 0, 1, ... Throws InvalidArgument "[<name>] ..." when x is of rank below 2, of
  // another size, not floating, or has more positions than there are vectors.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;
  // The same from position `first` on, an integer scalar. Positions beyond the last vector are out of
  // range as embedding_lookup's (ops/gather.h).
  Tensor from(const Tensor& first, const Tensor& x,
              SourceLocation at = SourceLocation::current()) const;

  const Variable& embeddings() const { return embeddings_; }
  std::int64_t input_size() const { return embeddings_.shape()[1]; }
  std::int64_t output_size(std::int64_t) const { return input_size(); }

 private:
  Variable embeddings_;
};

}  // namespace lockstep::nn
