// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/residual.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>

namespace lockstep::nn {

Residual::Residual(std::in_place_t, Sequential layers)
    : Layer("residual", layers.location()), layers_(std::move(layers)) {
  const std::int64_t takes = layers_.input_size(), gives = layers_.output_size(takes);
  require(takes == kAnySize || gives == kAnySize || takes == gives, location(), "Residual",
          "expected layers that give the ", takes, " values that they take, they give ", gives);
  for (const Variable& variable : layers_.variables()) adopt(variable);
}

Tensor Residual::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  check_input(x, {.min_rank = 0}, at);
  const Tensor y = layers_(x, options, at);
  require(y.shape() == x.shape(), at, name(), "expected a result of the input's shape ", x.shape(),
          ", got ", y.shape());
  return add(Operand(cast(x, y.dtype(), at), at), Operand(y, at));
}

void Residual::rename(const std::string& name) {
  set_name(name);
  layers_.rename(name);
}

}  // namespace lockstep::nn
