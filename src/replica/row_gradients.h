// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/indexed_slices.h>

#include <cstdint>

namespace lockstep {

// Whether a gradient of rows is better kept as rows than made dense, where each of `num_replicas` has
// about as many: they are much less than the table, and that is large enough for a collective of its
// own. Never on accelerators, which do not wait for indices.
inline bool better_as_rows(const IndexedSlices& gradient, int num_replicas) {
  constexpr std::int64_t kLeastBytes = 256 << 10;
  const std::int64_t table =
      gradient.shape.num_elements() * static_cast<std::int64_t>(size_of(gradient.values.dtype()));
  return gradient.values.device().is_host() && gradient.indices.device().is_host() &&
         table >= kLeastBytes && 2 * num_replicas * gradient.indices.dim(0) <= gradient.shape[0];
}

}  // namespace lockstep
