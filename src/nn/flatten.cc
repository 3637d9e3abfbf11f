// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/flatten.h>
#include <lockstep/ops/shape_ops.h>

namespace lockstep::nn {

Tensor Flatten::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {}, at);
  return x.rank() == 1 ? expand_dims(x, 1, at) : flatten_from(x, 1, at);
}

}  // namespace lockstep::nn
