// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

Expr along(std::string_view instruction, const Expr& x, int axis) {
  const double initial = instruction == "add" ? 0 : -std::numeric_limits<double>::infinity();
  const std::int64_t axes[] = {axis};
  return hlo::reshape(
      hlo::reduce(instruction, x, hlo::constant(initial, {x.element(), Shape{}}), axes),
      x.shape().with_dim(axis, 1));
}

// log(sum(exp(x))) of each row, as its largest element and the rest.
struct LogSum {
  Expr max, rest;
};

LogSum log_sum(const Expr& x) {
  const int last = x.shape().rank() - 1;
  const Expr max = along("maximum", x, last);
  return {max, hlo::log(along("add", hlo::exp(x - max), last))};
}

Expr without_last(const Expr& x) { return hlo::reshape(x, x.shape().without_axis(-1)); }

}  // namespace

Tensor softmax(const Tensor& x, int axis, bool log) {
  const Expr value = hlo::wide_operand("softmax", x);
  const Expr shifted = value - along("maximum", value, axis);
  const Expr powers = hlo::exp(shifted);
  const Expr sum = along("add", powers, axis);
  return hlo::tensor(log ? shifted - hlo::log(sum) : powers / sum, x.dtype());
}

Tensor sparse_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Expr x = hlo::wide_operand("sparse_softmax_cross_entropy", logits);
  const Expr classes = hlo::operand("sparse_softmax_cross_entropy", labels);
  const Expr column = hlo::reshape(classes, labels.shape().with_axis(labels.rank()));
  const int last = x.shape().rank() - 1;
  const Expr own = hlo::equal(hlo::iota({classes.element(), x.shape()}, last), column);
  const Expr nothing = hlo::constant(0, {x.element(), Shape{}});
  const auto [max, rest] = log_sum(x);
  const Expr loss = rest + (max - along("add", hlo::select(own, x, nothing), last));
  const Expr known = (column >= 0) & (column < static_cast<double>(x.shape()[last]));
  const Expr unknown =
      hlo::constant(std::numeric_limits<double>::quiet_NaN(), {x.element(), Shape{}});
  return hlo::tensor(without_last(hlo::select(known, loss, unknown)), logits.dtype());
}

Tensor cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Expr x = hlo::wide_operand("softmax_cross_entropy", logits);
  const Expr weights = hlo::wide_operand("softmax_cross_entropy", labels);
  const auto [max, rest] = log_sum(x);
  const Expr zero = hlo::constant(0, {x.element(), Shape{}});
  // A class of weight zero adds nothing, even where its logit is minus infinity.
  const Expr each = hlo::select(hlo::equal(weights, zero), zero, weights * (rest + (max - x)));
  return hlo::tensor(without_last(along("add", each, x.shape().rank() - 1)), logits.dtype());
}

}  // namespace lockstep::traced
