// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <span>

namespace lockstep {

// Rows of a batch: the elements of a tensor's first axis.

// The half-open range of rows [begin, end).
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

// Part `part` of `rows` dealt over `parts`: contiguous, ceil(rows / parts) each, the last ones
// short or empty (TensorFlow's per-batch rule).
LOCKSTEP_EXPORT RowRange rows_of_part(std::int64_t rows, int parts, int part);

// Rows of a tensor of rank >= 1 as a view that shares its memory. Throws InvalidArgument out of
// range.
LOCKSTEP_EXPORT Tensor slice_rows(const Tensor& x, RowRange range);

// The given rows of host tensor x, copied, in that order.
LOCKSTEP_EXPORT Tensor gather_rows(const Tensor& x, std::span<const std::int64_t> indices);

// Rows of several host tensors after each other; dtypes and row shapes must agree, else
// InvalidArgument.
LOCKSTEP_EXPORT Tensor concat_rows(std::span<const Tensor> parts);

// Tensors of one shape as the rows of a new one; dtypes and shapes must agree, else
// InvalidArgument.
LOCKSTEP_EXPORT Tensor stack_rows(std::span<const Tensor> rows);

// The number of rows that all leaves of a batch have. Throws InvalidArgument, naming `op`, when a
// leaf is a scalar or leaves disagree.
LOCKSTEP_EXPORT std::int64_t common_rows(std::span<const Tensor> leaves, const char* op);

template <Nest T>
std::int64_t num_rows(const T& batch) {
  return common_rows(flatten(batch), "num_rows");
}

}  // namespace lockstep
