// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/auc.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

constexpr double kBeyond = 1e-7;  // Keras's: the outer thresholds are beyond all predictions

std::vector<double> thresholds_of(const AUCOptions& options, SourceLocation at) {
  std::vector<double> inner = options.thresholds;
  if (inner.empty()) {
    require(options.num_thresholds >= 2, at, "AUC", "expected 2 thresholds or more, got ",
            options.num_thresholds);
    for (int i = 1; i + 1 < options.num_thresholds; ++i)
      inner.push_back(static_cast<double>(i) / (options.num_thresholds - 1));
  }
  for (const double threshold : inner)
    require(threshold >= 0 && threshold <= 1, at, "AUC", "expected thresholds in [0, 1], got ",
            threshold);
  std::sort(inner.begin(), inner.end());
  inner.insert(inner.begin(), -kBeyond);
  inner.push_back(1 + kBeyond);
  return inner;
}

// What each interval between thresholds has at its lower and at its upper one.
Tensor lower(const Tensor& x) { return slice(x, {0}, {x.dim(0) - 1}); }
Tensor upper(const Tensor& x) { return slice(x, {1}, {x.dim(0) - 1}); }

// Between two thresholds the true positives are linear in all that are predicted positive; the
// integral of precision over recall, in closed form (Davis and Goadrich, 2006).
Tensor area_of_interpolated_precision(const Tensor& true_positives, const Tensor& predicted,
                                      const Tensor& positives) {
  const Tensor gained = lower(true_positives) - upper(true_positives);
  const Tensor slope = div_no_nan(gained, maximum(lower(predicted) - upper(predicted), 0));
  const Tensor intercept = upper(true_positives) - slope * upper(predicted);
  const Tensor both = logical_and(greater(lower(predicted), 0), greater(upper(predicted), 0));
  const Tensor ratio = select(both, div_no_nan(lower(predicted), upper(predicted)), 1.0);
  return sum(div_no_nan(slope * (gained + intercept * log(ratio)), upper(positives)));
}

// Whether all are between the outer thresholds; NaN is not.
template <class T>
bool all_probabilities(std::span<const T> scores) {
  const auto low = static_cast<T>(-kBeyond), high = static_cast<T>(1 + kBeyond);
  bool all = true;
  for (const T score : scores) all &= score > low && score <= high;
  return all;
}

// Those that do not count, as rows that are padding, may be anything.
void require_probabilities(const Tensor& labels, const Tensor& predictions, const Tensor& weight,
                           const char* op, SourceLocation at) {
  const Pair pair = in_one_shape(labels, predictions, op, at);
  if (!pair.predictions.device().is_host()) return;
  const bool wide = predictions.dtype() == DType::f64;
  const Tensor scores = cast(pair.predictions, wide ? DType::f64 : DType::f32);
  if (wide ? all_probabilities(scores.data<double>()) : all_probabilities(scores.data<float>()))
    return;
  const Tensor weights = defined_weights(pair.predictions, weight, op, at);
  if (!weights.device().is_host()) return;
  const std::vector<double> values = cast(scores, DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    require(weights.data<double>()[i] == 0 || all_probabilities(std::span(&values[i], 1)), at, op,
            "expected predictions from 0 to 1, got ", values[i], " at place ", i,
            std::isnan(values[i]) ? "" : "; for logits make it with {.from_logits = true}");
}

}  // namespace

AUC::AUC(const AUCOptions& options, SourceLocation at)
    : ThresholdMetric(thresholds_of(options, at), options.name, at),
      curve_(options.curve),
      rule_(options.summation_method),
      from_logits_(options.from_logits) {}

void AUC::update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight,
                       SourceLocation at) {
  constexpr const char* kOp = "AUC::update_state";
  const RecorderScope suspended(nullptr);
  const Tensor scores = from_logits_ ? sigmoid(predictions, at) : predictions;
  require_step(kOp, at);
  require_probabilities(labels, scores, weight, kOp, at);
  count(labels, scores, weight, {}, kOp, at);
}

Tensor AUC::result(SourceLocation at) const {
  const Counts sums = counts(at);
  const RecorderScope suspended(nullptr);
  const Tensor positives = sums.true_positives + sums.false_negatives;
  const Tensor predicted = sums.true_positives + sums.false_positives;
  if (curve_ == Curve::pr && rule_ == AreaRule::interpolation)
    return area_of_interpolated_precision(sums.true_positives, predicted, positives);
  const Tensor recall = div_no_nan(sums.true_positives, positives);
  const bool roc = curve_ == Curve::roc;
  const Tensor x =
      roc ? div_no_nan(sums.false_positives, sums.false_positives + sums.true_negatives) : recall;
  const Tensor y = roc ? recall : div_no_nan(sums.true_positives, predicted);
  const Tensor height = rule_ == AreaRule::minoring   ? minimum(lower(y), upper(y))
                        : rule_ == AreaRule::majoring ? maximum(lower(y), upper(y))
                                                      : (lower(y) + upper(y)) / 2;
  return sum((lower(x) - upper(x)) * height);
}

}  // namespace lockstep::metrics
