// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/embedding.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/gather.h>

namespace lockstep::nn {
namespace {

Shape table_shape(std::int64_t input_dim, std::int64_t output_dim, SourceLocation at) {
  require(input_dim > 0 && output_dim > 0, at, "Embedding", "expected sizes of 1 or more, got ",
          input_dim, " and ", output_dim);
  return Shape({input_dim, output_dim}, at, "Embedding");
}

}  // namespace

Embedding::Embedding(std::int64_t input_dim, std::int64_t output_dim,
                     const EmbeddingOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      embeddings_(add_variable("embeddings", table_shape(input_dim, output_dim, at),
                               options.embeddings_initializer)) {}

// Rows are cast after they were read: a cast of the table would read all of it, and its gradient be
// dense.
Tensor Embedding::operator()(const Tensor& ids, CallOptions, SourceLocation at) const {
  check_input(ids, {.min_rank = 0}, at);
  require(ids.dtype() == DType::i32 || ids.dtype() == DType::i64, at, name(),
          "expected ids of i32 or i64, got ", name_of(ids.dtype()), ids.shape(),
          "; convert them with cast()");
  return cast(embedding_lookup(embeddings_.read(at), ids, at), policy().compute_dtype(), at);
}

}  // namespace lockstep::nn
