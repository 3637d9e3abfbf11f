// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct EmbeddingOptions {
  Initializer embeddings_initializer = random_uniform();
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "embedding";
};

// A learned vector for each of `input_dim` numbers: ids [..] of i32 or i64 to [.., output_dim]
// (ops/gather.h). The gradient names the rows that were read (IndexedSlices), for those who ask for
// it. Variable: "<name>/embeddings" [input_dim, output_dim].
class LOCKSTEP_EXPORT Embedding : public Layer {
 public:
  // Throws InvalidArgument for sizes below 1 or a dtype that is not floating.
  Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options = {},
            SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[embedding] ..." for ids of another dtype; where the device can tell,
  // an id out of range, too.
  Tensor operator()(const Tensor& ids, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  const Variable& embeddings() const { return embeddings_; }
  std::int64_t output_size(std::int64_t) const { return embeddings_.shape()[1]; }

 private:
  Variable embeddings_;
};

}  // namespace lockstep::nn
