// SPDX-License-Identifier: Apache-2.0
#include "replica/expected_gradients.h"

#include <lockstep/base/check.h>

#include <string>

namespace lockstep {
namespace {

std::string api_name(const char* call) { return std::string("GradientReduction::") + call; }

}  // namespace

ExpectedGradients::ExpectedGradients(std::span<const Variable> variables, SourceLocation at)
    : variables_(variables.begin(), variables.end()), arrived_(variables.size(), false) {
  for (const Variable& variable : variables)
    require(is_floating(variable.dtype()), at, "begin_gradient_reduction", "variable '",
            variable.name(), "' is of ", name_of(variable.dtype()),
            "; only floating variables have gradients");
}

void ExpectedGradients::check_index(const char* call, std::size_t index) const {
  if (index >= size())
    throw InvalidArgument(
        message(api_name(call), "expected the index of one of ", size(), " variables, got ", index),
        SourceLocation{});
}

const Variable& ExpectedGradients::arrives(std::size_t index) const {
  check_index("ready", index);
  const Variable& variable = variables_[index];
  require(!arrived_[index], SourceLocation{}, "GradientReduction::ready",
          "the gradient of variable '", variable.name(), "' was ready before; hand it over once");
  return variable;
}

void ExpectedGradients::check_rows(std::size_t index, const IndexedSlices& gradient) const {
  const Variable& variable = arrives(index);
  const Tensor &values = gradient.values, &indices = gradient.indices;
  require(variable.shape().rank() > 0 && gradient.shape == variable.shape() && values.defined() &&
              values.dtype() == variable.dtype() && indices.defined() && indices.rank() == 1 &&
              values.shape() == variable.shape().with_dim(0, indices.dim(0)),
          SourceLocation{}, "GradientReduction::ready", "the gradient of variable '",
          variable.name(), "' must be rows of ", name_of(variable.dtype()), variable.shape(),
          " and an index for each, got values ", values, " and indices ", indices, " into ",
          gradient.shape);
}

void ExpectedGradients::arrived(std::size_t index, const IndexedSlices& gradient) {
  check_rows(index, gradient);
  arrived_[index] = true;
}

void ExpectedGradients::arrived(std::size_t index, const Tensor& gradient) {
  const Variable& variable = arrives(index);
  require(!gradient.defined() ||
              (gradient.dtype() == variable.dtype() && gradient.shape() == variable.shape()),
          SourceLocation{}, "GradientReduction::ready", "the gradient of variable '",
          variable.name(), "' must be ", name_of(variable.dtype()), variable.shape().to_string(),
          ", got ", gradient.to_string());
  arrived_[index] = true;
}

void ExpectedGradients::check_complete() const {
  for (std::size_t i = 0; i < size(); ++i)
    require(arrived_[i], SourceLocation{}, "GradientReduction::finish",
            "the gradient of variable '", variables_[i].name(),
            "' is not ready; every variable needs one, undefined if unused");
}

}  // namespace lockstep
