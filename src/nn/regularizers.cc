// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/regularizers.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

namespace lockstep::nn {
namespace {

double checked(const char* call, double factor, SourceLocation at) {
  require(factor >= 0, at, call, "expected a factor of 0 or more, got ", factor);
  return factor;
}

}  // namespace

Regularizer l1(double factor, SourceLocation at) {
  checked("l1", factor, at);
  return [factor](const Tensor& weight) { return sum(abs(weight)) * factor; };
}

Regularizer l2(double factor, SourceLocation at) {
  checked("l2", factor, at);
  return [factor](const Tensor& weight) { return sum(square(weight)) * factor; };
}

Regularizer l1_l2(const L1L2Options& options, SourceLocation at) {
  return [first = l1(options.l1, at), second = l2(options.l2, at)](const Tensor& weight) {
    return first(weight) + second(weight);
  };
}

}  // namespace lockstep::nn
