// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/tensor/tensor.h>

#include <functional>

namespace lockstep::nn {

// A penalty on a weight, a scalar in the weight's dtype, to be added to the loss. It does not depend on
// the data, so each replica adds its part of it:
//
//   loss = compute_average_loss(losses) + scale_regularization_loss(l2(1e-4)(dense.kernel()));
//
// Negative factors are InvalidArgument.
using Regularizer = std::function<Tensor(const Tensor& weight)>;

// factor times the sum of |w|, and of w^2.
LOCKSTEP_EXPORT Regularizer l1(double factor = 0.01, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Regularizer l2(double factor = 0.01, SourceLocation at = SourceLocation::current());

struct L1L2Options {
  double l1 = 0;
  double l2 = 0;
};
// Both.
LOCKSTEP_EXPORT Regularizer l1_l2(const L1L2Options& options,
                                  SourceLocation at = SourceLocation::current());

}  // namespace lockstep::nn
