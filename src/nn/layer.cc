// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/layer.h>

namespace lockstep::nn {

Variable Layer::add_variable(const char* role, const Shape& shape, DType dtype,
                             const Initializer& initializer) {
  const Tensor initial = initializer(shape, dtype);
  require(initial.defined() && initial.shape() == shape && initial.dtype() == dtype, at_, name_,
          "expected an initializer that gives ", name_of(dtype), shape, " for the ", role, ", got ",
          initial);
  Variable variable(initial, {.name = name_ + "/" + role}, at_);
  adopt(variable);
  return variable;
}

void Layer::adopt(const Variable& variable) {
  variables_.push_back(variable);
  if (variable.trainable()) trainable_.push_back(variable);
}

void Layer::rename(std::string name) {
  for (Variable& variable : variables_) {
    const std::string& old = variable.name();
    std::string renamed = name;
    renamed += '/';
    renamed.append(old, old.rfind('/') + 1);
    variable.rename(std::move(renamed));
  }
  name_ = std::move(name);
}

void Layer::visit_state(StateVisitor& visitor) {
  for (Variable& variable : variables_) variable.visit_state(visitor);
}

void Layer::check_input(const Tensor& x, const Input& expected, SourceLocation at) const {
  require(x.defined(), at, name_, "expected an input, got an undefined tensor");
  if (x.rank() >= expected.min_rank && x.rank() <= expected.max_rank &&
      (expected.size == kAnySize || x.dim(-1) == expected.size) &&
      (!expected.dtype || x.dtype() == *expected.dtype))
    return;
  std::string text = "an input of rank " + std::to_string(expected.min_rank);
  if (expected.max_rank != expected.min_rank) text += " or more";
  if (expected.size != kAnySize)
    text += " with " + std::to_string(expected.size) + " values on the last axis";
  if (expected.dtype) text += " of dtype " + std::string(name_of(*expected.dtype));
  throw InvalidArgument(message(name_, "expected ", text, ", got ", name_of(x.dtype()), x.shape()),
                        at);
}

}  // namespace lockstep::nn
