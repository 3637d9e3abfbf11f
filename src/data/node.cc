// SPDX-License-Identifier: Apache-2.0
#include "data/node.h"

#include <limits>

namespace lockstep::data {

std::string to_string(const LeafSpec& spec) {
  std::string text(name_of(spec.dtype));
  text += '[';
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    if (i) text += ", ";
    text += spec.dims[i] < 0 ? "?" : std::to_string(spec.dims[i]);
  }
  return text + ']';
}

void require_host_leaves(const Leaves& leaves, const char* op, SourceLocation at) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    require(leaves[i].defined(), at, op, "tensor ", i, " of the element is undefined");
    require(leaves[i].device().is_host(), at, op, "tensor ", i, " of the element is on ",
            leaves[i].device(), "; datasets hold host tensors: copy it to the host first");
  }
}

ElementSpec spec_of(const Leaves& element) {
  ElementSpec spec;
  for (const Tensor& leaf : element) {
    const auto dims = leaf.shape().dims();
    spec.push_back({leaf.dtype(), {dims.begin(), dims.end()}});
  }
  return spec;
}

ElementSpec dealt_spec(ElementSpec batches) {
  for (LeafSpec& leaf : batches)
    if (!leaf.dims.empty()) leaf.dims[0] = -1;
  batches.push_back({DType::i64, {}});
  return batches;
}

Leaves with_row_count(Leaves leaves, std::int64_t rows) {
  leaves.emplace_back(rows);
  return leaves;
}

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return b != 0 && a > kMost / b ? kMost : a * b;
}

}  // namespace lockstep::data
