// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Some rows of the products q k' of one head, [rows, cols] without gaps, and what hides or moves
// them. Row r sees columns below first_query + r + 1, and of these where a mask does not hide them.
template <class T>
struct Scores {
  std::int64_t rows, cols;
  std::int64_t first_query;  // cols or more: nothing is causal
  T scale;
  // At most one of the two is set; the element of row r and column c lies at r * mask_row + c *
  // mask_col, where mask_col is 0 or 1.
  const bool* visible;
  const T* added;
  std::int64_t mask_row, mask_col;
};

template <class T>
struct AttentionKernel {
  // From products to probabilities, in place; log_sums [rows] is log(sum(exp(..))), plus infinity
  // where a row sees nothing: then its probabilities are 0.
  void (*probabilities)(const Scores<T>& scores, T* products, T* log_sums);
  // From products, and dp = dy v', to probabilities p and scale p (dp - sum(dy y)), in place; dy and
  // y [rows, out]. Adds p (dp - sum(dy y)) to dmask, laid out as `added`, unless it is null.
  void (*gradient)(const Scores<T>& scores, const T* log_sums, const T* dy, const T* y,
                   std::int64_t out, T* products, T* dp, T* dmask);
};

struct AttentionKernels {
  AttentionKernel<float> f32;
  AttentionKernel<double> f64;
};
LOCKSTEP_ISA_TABLE(AttentionKernels, attention_kernels);

}  // namespace lockstep
