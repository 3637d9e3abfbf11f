// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <cstdint>

namespace lockstep {

// A row-major tensor seen from one axis, or from several that follow each other: how many elements
// there are before, along and after it.
struct AroundAxis {
  std::int64_t outer = 1, along = 1, inner = 1;

  AroundAxis(const Shape& shape, int axis, int axes = 1) {
    for (int i = 0; i < shape.rank(); ++i)
      (i < axis ? outer : i < axis + axes ? along : inner) *= shape[i];
  }
};

}  // namespace lockstep
