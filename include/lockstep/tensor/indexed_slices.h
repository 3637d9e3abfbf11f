// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// A tensor of `shape` that is zero but for some of its rows: row indices[i] is values[i], and the
// sum of them where a row is named more than once. The gradient of a table of which a step read a
// few rows only.
struct IndexedSlices {
  Tensor values;   // [count] + shape without its first axis
  Tensor indices;  // i32 or i64 [count]
  Shape shape;

  bool defined() const { return values.defined(); }
};

}  // namespace lockstep
