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

#include <algorithm>
#include <span>
#include <utility>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

// Compared with all thresholds in one go, so that the comparisons stay small.
constexpr std::int64_t kExamplesAtOnce = 4096;

}  // namespace

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
  const Tensor by_class =
      stack({select(positive, weights, 0), select(positive, 0, weights)}, 1);  // [examples, 2]
  // Compared as numbers of their own precision: 0.1f is not above 0.1.
  const DType dtype = predictions.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor limits =
      cast(Tensor(Shape{std::ssize(thresholds_)}, std::span<const double>(thresholds_)), dtype);
  const Tensor scores = cast(reshape(shaped_predictions, {-1, 1}), dtype);
  const Tensor among = candidates.defined() ? reshape(candidates, {-1, 1}) : candidates;
  for (std::int64_t begin = 0, n = scores.dim(0); begin < n; begin += kExamplesAtOnce) {
    const std::int64_t size = std::min(kExamplesAtOnce, n - begin);
    const auto part = [&](const Tensor& x) { return slice(x, {begin, 0}, {size, -1}); };
    Tensor above = greater(part(scores), limits);
    if (among.defined()) above = logical_and(above, part(among));
    const Tensor weighted = part(by_class);
    const Tensor counted =
        matmul(weighted, cast(above, DType::f64), {.transpose_a = true});  // [2, thresholds]
    const Tensor all = sum(weighted, {.axes = {0}});
    add(concat({counted, expand_dims(all, -1)}, 1), at);
  }
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
