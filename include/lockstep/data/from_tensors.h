// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/dataset.h>

#include <utility>

namespace lockstep::data {

// The rows of `tensors` as elements: element i holds row i of each leaf, as a view. Leaves must be
// host tensors with equally many rows, else InvalidArgument. Batches of it are gathered in one
// pass, even when it is shuffled, sharded or repeated before.
template <class T>
Dataset<T> from_tensor_slices(T tensors, SourceLocation at = SourceLocation::current()) {
  static_assert(TensorNest<T>, "from_tensor_slices: expected a nest of tensors, without numbers");
  AnyDataset erased = AnyDataset::from_tensor_slices(flatten(tensors), at);
  return Dataset<T>(std::move(erased), std::move(tensors));
}

// One element: `element` itself.
template <class T>
Dataset<T> from_tensors(T element, SourceLocation at = SourceLocation::current()) {
  AnyDataset erased = AnyDataset::from_tensors(flatten(element), at);
  return Dataset<T>(std::move(erased), std::move(element));
}

// The integers 0, 1, ... below `end`; or begin, begin + step, ... below `end` (above it for a
// negative step), as scalars of i64. A step of 0 is InvalidArgument.
LOCKSTEP_EXPORT Dataset<Tensor> range(std::int64_t end,
                                      SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Dataset<Tensor> range(std::int64_t begin, std::int64_t end, std::int64_t step = 1,
                                      SourceLocation at = SourceLocation::current());

}  // namespace lockstep::data
