// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/position_embedding.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/shape_ops.h>

#include "nn/position.h"

namespace lockstep::nn {
namespace {

Shape table_shape(std::int64_t length, std::int64_t size, DType dtype, SourceLocation at) {
  require(length > 0 && size > 0, at, "PositionEmbedding", "expected sizes of 1 or more, got ",
          length, " and ", size);
  require(is_floating(dtype), at, "PositionEmbedding", "expected a floating dtype, got ",
          name_of(dtype));
  return Shape({length, size}, at, "PositionEmbedding");
}

}  // namespace

PositionEmbedding::PositionEmbedding(std::int64_t length, std::int64_t size,
                                     const PositionEmbeddingOptions& options, SourceLocation at)
    : Layer(options.name, at),
      embeddings_(add_variable("embeddings", table_shape(length, size, options.dtype, at),
                               options.dtype, options.initializer)) {}

Tensor PositionEmbedding::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 2, .size = input_size(), .dtype = embeddings_.dtype()}, at);
  const std::int64_t length = embeddings_.shape()[0];
  require(x.dim(-2) <= length, at, name(), "expected at most ", length, " positions, got ",
          x.dim(-2), " in ", x.shape());
  return add(Operand(x, at), slice(embeddings_.read(at), {0, 0}, {x.dim(-2), -1}, at));
}

Tensor PositionEmbedding::from(const Tensor& first, const Tensor& x, SourceLocation at) const {
  check_input(x, {.min_rank = 2, .size = input_size(), .dtype = embeddings_.dtype()}, at);
  const Tensor positions = positions_from(first, x.dim(-2), name(), at);
  return add(Operand(x, at), embedding_lookup(embeddings_.read(at), positions, at));
}

}  // namespace lockstep::nn
