// SPDX-License-Identifier: Apache-2.0
#include "metrics/counting.h"

#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include "replica/counted_rows.h"

namespace lockstep::metrics {
namespace {

// The shape of `weight` with axes of extent 1 at its end, so that it has as many as `values`.
Shape from_first_axes(const Tensor& weight, const Tensor& values, const char* op,
                      SourceLocation at) {
  Shape shape = weight.shape(at);
  if (shape.rank() == values.rank() + 1 && shape.dim(-1) == 1) shape = shape.without_axis(-1);
  bool fits = shape.rank() <= values.rank();
  for (int axis = 0; fits && axis < shape.rank(); ++axis)
    fits = shape.dim(axis) == values.dim(axis) || shape.dim(axis) == 1;
  require(fits, at, op, "expected a weight that is a scalar, or of the first axes of ",
          values.shape(), ", got ", weight.shape());
  while (shape.rank() < values.rank()) shape = shape.with_axis(shape.rank());
  return shape;
}

}  // namespace

Tensor counting_weights(const Tensor& values, const Tensor& weight, const char* op,
                        SourceLocation at) {
  Tensor factor;
  if (weight.defined())
    factor = broadcast_to(
        cast(reshape(weight, from_first_axes(weight, values, op, at), at), DType::f64, at),
        values.shape(), at);
  const auto counted = counted_rows_of(values);
  if (!counted) return factor;
  if (!factor.defined()) factor = ones(values.shape(), DType::f64);
  return without_padding(factor, *counted);
}

Tensor defined_weights(const Tensor& values, const Tensor& weight, const char* op,
                       SourceLocation at) {
  const Tensor weights = counting_weights(values, weight, op, at);
  return weights.defined() ? weights : ones(values.shape(), DType::f64);
}

Tensor div_no_nan(const Tensor& a, const Tensor& b) { return select(equal(b, 0), 0, a / b); }

Pair in_one_shape(const Tensor& labels, const Tensor& predictions, const char* op,
                  SourceLocation at) {
  Shape of_labels = labels.shape(at), of_predictions = predictions.shape(at);
  if (of_labels.rank() == of_predictions.rank() + 1 && of_labels.dim(-1) == 1)
    of_labels = of_labels.without_axis(-1);
  if (of_predictions.rank() == of_labels.rank() + 1 && of_predictions.dim(-1) == 1)
    of_predictions = of_predictions.without_axis(-1);
  require(of_labels == of_predictions, at, op, "expected labels and predictions of one shape, got ",
          labels.shape(), " and ", predictions.shape());
  return {reshape(labels, of_labels), reshape(predictions, of_predictions)};
}

Tensor mean_of_example(const Tensor& values) {
  return values.rank() > 1 ? mean(values, {.axes = {-1}}) : values;
}

void require_sparse(const Tensor& labels, const Tensor& predictions, const char* op,
                    SourceLocation at) {
  require(is_integer(labels.dtype(at)) && predictions.rank(at) == labels.rank() + 1 &&
              predictions.shape().without_axis(-1) == labels.shape(),
          at, op, "expected integer labels [..] and predictions [.., classes], got ",
          name_of(labels.dtype()), labels.shape(), " and ", predictions.shape());
}

}  // namespace lockstep::metrics
