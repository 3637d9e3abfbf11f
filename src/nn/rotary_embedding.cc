// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/rotary_embedding.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/shape_ops.h>

#include <cmath>
#include <vector>

#include "nn/position.h"

namespace lockstep::nn {
namespace {

// The angle of each pair at each position: f64 [positions, pairs].
Tensor angles(const Tensor& positions, std::int64_t pairs, double base) {
  std::vector<double> speeds;
  for (std::int64_t i = 0; i < pairs; ++i)
    speeds.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs)));
  return expand_dims(cast(positions, DType::f64), 1) *
         Tensor(Shape{pairs}, std::span<const double>(speeds));
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const RotaryEmbeddingOptions& options, SourceLocation at)
    : Layer(options.name, at), base_(options.base) {
  require(std::isfinite(base_) && base_ > 0, at, name(), "expected a positive base, got ", base_);
}

Tensor RotaryEmbedding::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  return from(Tensor(std::int64_t{0}), x, at);
}

Tensor RotaryEmbedding::from(const Tensor& first, const Tensor& x, SourceLocation at) const {
  check_input(x, {.min_rank = 2, .max_rank = Shape::kMaxRank - 1}, at);
  require(is_floating(x.dtype()) && x.dim(-1) % 2 == 0, at, name(),
          "expected pairs of floating values on the last axis, got ", name_of(x.dtype()),
          x.shape());
  const std::int64_t pairs = x.dim(-1) / 2;
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor angle = angles(positions_from(first, x.dim(-2), name(), at), pairs, base_);
  const Tensor c = cast(cos(angle), wide), s = cast(sin(angle), wide);
  const auto ab =
      unstack(reshape(cast(x, wide, at), x.shape().with_dim(-1, pairs).with_axis(x.rank(), 2)), -1);
  const Tensor turned = stack({ab[0] * c - ab[1] * s, ab[1] * c + ab[0] * s}, -1);
  return cast(reshape(turned, x.shape()), x.dtype());
}

}  // namespace lockstep::nn
