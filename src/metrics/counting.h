// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep::metrics {

// How much each element of `values` counts: f64 of their shape, `weight` (1 when undefined) spread
// from the first axes on, and 0 in rows that are padding. Undefined when all count once.
Tensor counting_weights(const Tensor& values, const Tensor& weight, const char* op,
                        SourceLocation at);
// The same, never undefined.
Tensor defined_weights(const Tensor& values, const Tensor& weight, const char* op,
                       SourceLocation at);

// a / b, 0 where b is 0.
Tensor div_no_nan(const Tensor& a, const Tensor& b);

struct Pair {
  Tensor labels, predictions;
};
// Both in one shape, without a last axis of extent 1 that only one has; dtypes as they were.
Pair in_one_shape(const Tensor& labels, const Tensor& predictions, const char* op,
                  SourceLocation at);

// The mean over the last axis, if there is one besides the rows': what each example counts with.
Tensor mean_of_example(const Tensor& values);

// InvalidArgument unless labels are integers [..] for predictions [.., classes].
void require_sparse(const Tensor& labels, const Tensor& predictions, const char* op,
                    SourceLocation at);

}  // namespace lockstep::metrics
