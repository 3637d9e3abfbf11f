// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/dropout.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random.h>

namespace lockstep::nn {

Dropout::Dropout(double rate, std::string name, SourceLocation at)
    : Layer(std::move(name), at), rate_(rate) {
  require(rate >= 0 && rate < 1, at, this->name(), "expected a rate of 0 or more and below 1, got ",
          rate);
}

Tensor Dropout::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  check_input(x, {.min_rank = 0}, at);
  require(is_floating(x.dtype()), at, name(), "expected a floating dtype, got ",
          name_of(x.dtype()));
  if (!options.training || rate_ == 0) return x;
  const Tensor kept = bernoulli(x.shape(), 1 - rate_, DType::boolean, at);
  return select(kept, x * (1 / (1 - rate_)), 0);
}

}  // namespace lockstep::nn
