// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/variable.h>
#include <lockstep/tensor/indexed_slices.h>

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

// The gradients that a reduction is to be given, one per variable, each once: checks the calls.
// What it throws is InvalidArgument and names the variable.
class ExpectedGradients {
 public:
  // Throws for variables of a dtype that has no gradients.
  ExpectedGradients(std::span<const Variable> variables, SourceLocation at);

  std::size_t size() const { return variables_.size(); }
  const Variable& operator[](std::size_t index) const { return variables_[index]; }
  std::span<const Variable> variables() const { return variables_; }

  // Throws "[GradientReduction::<call>] ..." out of range.
  void check_index(const char* call, std::size_t index) const;
  // The gradient is there, undefined where the replica did not use the variable. Throws for another
  // shape or dtype than the variable's and for a second one.
  void arrived(std::size_t index, const Tensor& gradient);
  // The gradient that is there is of rows, with an index for each; and the check alone.
  void arrived(std::size_t index, const IndexedSlices& gradient);
  void check_rows(std::size_t index, const IndexedSlices& gradient) const;
  // Throws unless all are there.
  void check_complete() const;

 private:
  const Variable& arrives(std::size_t index) const;

  std::vector<Variable> variables_;
  std::vector<bool> arrived_;
};

}  // namespace lockstep
