// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/position_embedding.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/position.h"

namespace lockstep::nn {
namespace {

Shape table_shape(std::int64_t length, std::int64_t size, SourceLocation at) {
  require(length > 0 && size > 0, at, "PositionEmbedding", "expected sizes of 1 or more, got ",
          length, " and ", size);
  return Shape({length, size}, at, "PositionEmbedding");
}

}  // namespace

PositionEmbedding::PositionEmbedding(std::int64_t length, std::int64_t size,
                                     const PositionEmbeddingOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      embeddings_(add_variable("embeddings", table_shape(length, size, at), options.initializer)) {}

Tensor PositionEmbedding::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 2, .size = input_size()}, at);
  const std::int64_t length = embeddings_.shape()[0];
  require(x.dim(-2) <= length, at, name(), "expected at most ", length, " positions, got ",
          x.dim(-2), " in ", x.shape());
  return add(Operand(input, at), slice(weight(embeddings_, at), {0, 0}, {x.dim(-2), -1}, at));
}

Tensor PositionEmbedding::from(const Tensor& first, const Tensor& x, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 2, .size = input_size()}, at);
  const Tensor positions = positions_from(first, x.dim(-2), name(), at);
  return add(Operand(input, at), embedding_lookup(weight(embeddings_, at), positions, at));
}

}  // namespace lockstep::nn
