// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

hlo::Element accumulated(hlo::Element element) {
  return hlo::is_half(element) ? hlo::Element::f32 : element;
}

// The operand with the batch axes of `shape`, which it broadcasts to.
Expr batched(const Expr& x, const Shape& shape) {
  Shape wide = shape;
  const int rank = x.shape().rank();
  for (const int back : {2, 1}) wide = wide.with_dim(wide.rank() - back, x.shape()[rank - back]);
  return hlo::broadcast(x, wide);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options, const Shape& shape) {
  Expr left = hlo::operand("matmul", a), right = hlo::operand("matmul", b);
  const bool one_matrix = b.rank() == 2 && !options.transpose_a;
  hlo::DotAxes axes;
  if (!one_matrix) {  // else the rows of all matrices of a meet the same b
    left = batched(left, shape);
    right = batched(right, shape);
    axes.batch_a = axes.batch_b = hlo::axes_up_to(shape.rank() - 2);
  }
  axes.sum_a = {left.shape().rank() - (options.transpose_a ? 2 : 1)};
  axes.sum_b = {right.shape().rank() - (options.transpose_b ? 1 : 2)};
  return hlo::tensor(hlo::dot(left, right, axes, shape, accumulated(left.element())), a.dtype());
}

Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, const Shape& shape) {
  const Expr rows = hlo::operand("dense", x), matrix = hlo::operand("dense", w);
  Expr y =
      hlo::dot(rows, matrix, {.batch_a = {}, .batch_b = {}, .sum_a = {x.rank() - 1}, .sum_b = {0}},
               shape, accumulated(rows.element()));
  if (bias.defined()) y = y + hlo::wide_operand("dense", bias);
  if (relu) y = hlo::maximum(y, 0);
  return hlo::tensor(y, x.dtype());
}

}  // namespace lockstep::traced
