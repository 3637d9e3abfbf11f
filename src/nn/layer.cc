// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/layer.h>
#include <lockstep/ops/cast.h>

namespace lockstep::nn {

Layer::Layer(std::string name, const std::optional<PrecisionPolicy>& policy, SourceLocation at)
    : name_(std::move(name)), at_(at), policy_(policy.value_or(global_policy())) {
  require(is_floating(policy_.compute_dtype()) && is_floating(policy_.variable_dtype()), at_, name_,
          "expected a floating dtype, got ", policy_.name());
}

Variable Layer::add_variable(const char* role, const Shape& shape, const Initializer& initializer) {
  return make_variable(role, shape, policy_, initializer, true);
}

Variable Layer::add_norm_variable(const char* role, const Shape& shape,
                                  const Initializer& initializer, bool trainable) {
  const DType dtype = policy_.compute_dtype() == DType::f64 ? DType::f64 : DType::f32;
  return make_variable(role, shape, dtype, initializer, trainable);
}

Variable Layer::make_variable(const char* role, const Shape& shape, PrecisionPolicy policy,
                              const Initializer& initializer, bool trainable) {
  const DType dtype = policy.variable_dtype();
  const Tensor initial = initializer(shape, dtype);
  require(initial.defined() && initial.shape() == shape && initial.dtype() == dtype, at_, name_,
          "expected an initializer that gives ", name_of(dtype), shape, " for the ", role, ", got ",
          initial);
  Variable variable(
      initial,
      {.name = name_ + "/" + role, .trainable = trainable, .compute_dtype = policy.compute_dtype()},
      at_);
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
    renamed.append(old, old.starts_with(name_ + '/') ? name_.size() + 1 : old.rfind('/') + 1);
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
      (expected.size == kAnySize || x.dim(-1) == expected.size))
    return;
  std::string text = "an input of rank " + std::to_string(expected.min_rank);
  if (expected.max_rank != expected.min_rank) text += " or more";
  if (expected.size != kAnySize)
    text += " with " + std::to_string(expected.size) + " values on the last axis";
  throw InvalidArgument(message(name_, "expected ", text, ", got ", name_of(x.dtype()), x.shape()),
                        at);
}

Tensor Layer::computed(const Tensor& x, const Input& expected, SourceLocation at) const {
  check_input(x, expected, at);
  const DType dtype = policy_.compute_dtype();
  require(is_floating(x.dtype()) && (x.dtype() != DType::f64 || dtype == DType::f64), at, name_,
          "expected an input of dtype ", name_of(dtype), ", got ", name_of(x.dtype()), x.shape(),
          "; cast it, or give the layer another dtype");
  return cast(x, dtype, at);
}

Tensor Layer::weight(const Variable& variable, SourceLocation at) const {
  return cast(variable.read(at), policy_.compute_dtype(), at);
}
Tensor Layer::weight(const std::optional<Variable>& variable, SourceLocation at) const {
  return variable ? weight(*variable, at) : Tensor();
}

}  // namespace lockstep::nn
