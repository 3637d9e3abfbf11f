// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/precision.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/sort.h>

#include <cmath>
#include <limits>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

std::vector<double> thresholds_of(const PrecisionOptions& options, SourceLocation at) {
  constexpr const char* kOp = "PrecisionOptions";
  for (const double threshold : options.thresholds)
    require(std::isfinite(threshold), at, kOp, "expected finite thresholds, got ", threshold);
  require(!options.top_k || *options.top_k >= 1, at, kOp, "expected top_k of 1 or more, got ",
          options.top_k.value_or(0));
  require(!options.class_id || *options.class_id >= 0, at, kOp,
          "expected class_id of 0 or more, got ", options.class_id.value_or(0));
  if (!options.thresholds.empty()) return options.thresholds;
  return {options.top_k ? -std::numeric_limits<double>::infinity() : 0.5};
}

// True for the k largest along the last axis, the first of equal ones.
Tensor among_top_k(const Tensor& x, std::int64_t k, SourceLocation at) {
  const Tensor chosen = one_hot(top_k(x, k, at).indices, x.dim(-1), DType::i32);  // [.., k, n]
  return greater(sum(chosen, {.axes = {-2}}), 0);
}

Tensor class_of(const Tensor& x, std::int64_t id) {
  return x.defined() ? unstack(x, -1)[static_cast<std::size_t>(id)] : x;
}

}  // namespace

SelectedPredictions::SelectedPredictions(const PrecisionOptions& options, const char* name,
                                         SourceLocation at)
    : ThresholdMetric(thresholds_of(options, at), options.name.empty() ? name : options.name, at),
      top_k_(options.top_k),
      class_id_(options.class_id) {}

void SelectedPredictions::update_state(const Tensor& labels, const Tensor& predictions,
                                       const Tensor& weight, SourceLocation at) {
  const std::string op = name() + "::update_state";
  const RecorderScope suspended(nullptr);
  Pair pair = in_one_shape(labels, predictions, op.c_str(), at);
  const Shape& shape = pair.predictions.shape();
  const std::int64_t classes = shape.rank() > 0 ? shape.dim(-1) : 0;
  require(classes >= top_k_.value_or(0) && classes > class_id_.value_or(-1), at, op,
          "expected as many classes in the last axis as top_k, and more than class_id, got ",
          shape);
  Tensor candidates;
  if (top_k_) candidates = among_top_k(pair.predictions, *top_k_, at);
  if (class_id_) {
    pair = {class_of(pair.labels, *class_id_), class_of(pair.predictions, *class_id_)};
    candidates = class_of(candidates, *class_id_);
  }
  count(pair.labels, pair.predictions, weight, candidates, op.c_str(), at);
}

Tensor SelectedPredictions::per_threshold(const Tensor& values) const {
  return thresholds().size() == 1 ? reshape(values, Shape{}) : values;
}

Tensor Precision::result(SourceLocation at) const {
  const Counts sums = counts(at);
  const RecorderScope suspended(nullptr);
  return per_threshold(div_no_nan(sums.true_positives, sums.true_positives + sums.false_positives));
}

Tensor Recall::result(SourceLocation at) const {
  const Counts sums = counts(at);
  const RecorderScope suspended(nullptr);
  return per_threshold(div_no_nan(sums.true_positives, sums.true_positives + sums.false_negatives));
}

}  // namespace lockstep::metrics
