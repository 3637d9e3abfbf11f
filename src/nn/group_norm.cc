// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/group_norm.h>
#include <lockstep/ops/norm.h>

#include "nn/norm_layers.h"

namespace lockstep::nn {

GroupNorm::GroupNorm(std::int64_t channels, const GroupNormOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      channels_(channels),
      groups_(options.groups),
      epsilon_(options.epsilon) {
  check_norm("GroupNorm", channels, epsilon_, at);
  require(groups_ > 0 && channels % groups_ == 0, at, "GroupNorm",
          "expected groups that divide the ", channels, " channels, got ", groups_);
  const Shape shape{channels};
  if (options.scale) gamma_ = add_norm_variable("gamma", shape, options.gamma_initializer);
  if (options.center) beta_ = add_norm_variable("beta", shape, options.beta_initializer);
}

Tensor GroupNorm::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 2, .size = channels_}, at);
  return group_norm(input, gamma_ ? gamma_->read(at) : Tensor(), beta_ ? beta_->read(at) : Tensor(),
                    {.groups = groups_, .epsilon = epsilon_}, at);
}

}  // namespace lockstep::nn
