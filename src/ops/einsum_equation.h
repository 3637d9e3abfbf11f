// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

// The axes of a tensor by what einsum calls them: a letter, or kEllipsis + i for the i-th from the end
// of the axes that "..." stands for.
using Labels = std::vector<int>;
inline constexpr int kEllipsis = 256;

struct EinsumEquation {
  std::vector<Labels> operands;
  Labels result;
  std::map<int, std::int64_t> extents;
};

// Reads an equation for operands of these shapes. Throws InvalidArgument as einsum.h says.
EinsumEquation read_einsum(std::string_view equation, std::span<const Shape> shapes,
                           SourceLocation at);

bool has(const Labels& labels, int label);
// Those of `labels` that `keep` says.
template <class Keep>
Labels filtered(const Labels& labels, Keep&& keep) {
  Labels kept;
  for (const int label : labels)
    if (keep(label)) kept.push_back(label);
  return kept;
}

}  // namespace lockstep
