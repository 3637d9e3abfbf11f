// SPDX-License-Identifier: Apache-2.0
#include "replica/sum_components.h"

#include <lockstep/ops/elementwise.h>

namespace lockstep {

Tensor sum_components(std::span<const Tensor> components) {
  if (components.size() == 1) return components[0];
  std::size_t left = 1;  // the largest power of two below the count
  while (left * 2 < components.size()) left *= 2;
  return add(sum_components(components.first(left)), sum_components(components.subspan(left)));
}

}  // namespace lockstep
