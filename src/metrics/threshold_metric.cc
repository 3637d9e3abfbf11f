// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/threshold_metric.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <span>
#include <utility>

#include "metrics/counting.h"

namespace lockstep::metrics {

// The sums are [2, thresholds + 1]: of positive and of negative examples, those predicted to be
// above each threshold, and all of them.
ThresholdMetric::ThresholdMetric(std::vector<double> thresholds, std::string name,
                                 SourceLocation at)
    : Metric({2, std::ssize(thresholds) + 1}, std::move(name), at),
      thresholds_(std::move(thresholds)) {}

void ThresholdMetric::count(const Tensor& labels, const Tensor& predictions, const Tensor& weight,
                            const Tensor& candidates, const char* op, SourceLocation at) {
  require_step(op, at);
  const RecorderScope suspended(nullptr);
  const auto [shaped_labels, shaped_predictions] = in_one_shape(labels, predictions, op, at);
  const Tensor weights = reshape(defined_weights(shaped_predictions, weight, op, at), {-1});
  const Tensor positive = not_equal(cast(reshape(shaped_labels, {-1}), DType::f64), 0);
  // Compared as numbers of their own precision: 0.1f is not above 0.1.
  const DType dtype = predictions.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor limits =
      cast(Tensor(Shape{std::ssize(thresholds_)}, std::span<const double>(thresholds_)), dtype);
  Tensor above = greater(cast(reshape(shaped_predictions, {-1, 1}), dtype), limits);
  if (candidates.defined()) above = logical_and(above, reshape(candidates, {-1, 1}));
  const Tensor by_class =
      stack({select(positive, weights, 0), select(positive, 0, weights)});  // [2, examples]
  const Tensor counted = matmul(by_class, cast(above, DType::f64));
  add(concat({counted, sum(by_class, {.axes = {1}, .keep_dims = true})}, 1), at);
}

ThresholdMetric::Counts ThresholdMetric::counts(SourceLocation at) const {
  const Tensor sums = total(at);
  const RecorderScope suspended(nullptr);
  const std::vector<Tensor> parts = split(sums, {std::ssize(thresholds_), 1}, 1);
  const std::vector<Tensor> above = unstack(parts[0]), all = unstack(parts[1]);
  return {.true_positives = above[0],
          .false_positives = above[1],
          .true_negatives = all[1] - above[1],
          .false_negatives = all[0] - above[0]};
}

}  // namespace lockstep::metrics
