// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/layer_norm.h>
#include <lockstep/ops/norm.h>

#include "nn/norm_layers.h"

namespace lockstep::nn {

LayerNorm::LayerNorm(std::int64_t features, const LayerNormOptions& options, SourceLocation at)
    : LayerNorm((check_norm("LayerNorm", features, options.epsilon, at), Shape{features}), options,
                at) {}

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at), shape_(shape), epsilon_(options.epsilon) {
  require(shape.rank() > 0, at, "LayerNorm", "expected the extents of one axis or more, got none");
  check_norm("LayerNorm", shape.num_elements(), options.epsilon, at);
  if (options.scale) gamma_ = add_norm_variable("gamma", shape, options.gamma_initializer);
  if (options.center) beta_ = add_norm_variable("beta", shape, options.beta_initializer);
}

Tensor LayerNorm::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = shape_.rank(), .size = input_size()}, at);
  for (int axis = -shape_.rank(); axis < 0; ++axis)
    require(x.dim(axis) == shape_.dim(axis), at, name(), "expected an input whose last axes are ",
            shape_, ", got ", x.shape());
  return layer_norm(input, gamma_ ? gamma_->read(at) : Tensor(), beta_ ? beta_->read(at) : Tensor(),
                    {.axis = -shape_.rank(), .epsilon = epsilon_}, at);
}

}  // namespace lockstep::nn
