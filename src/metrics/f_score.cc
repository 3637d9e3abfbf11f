// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/f_score.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <cmath>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

FBetaScoreOptions with_beta_one(FBetaScoreOptions options, SourceLocation at) {
  require(options.beta == 1, at, "F1Score", "expected beta 1, got ", options.beta,
          "; use FBetaScore");
  if (options.name == FBetaScoreOptions{}.name) options.name = "f1_score";
  return options;
}

// The three sums of each class, and the same for the sums over classes.
struct Sums {
  Tensor right, predicted, positive;
};

Tensor score(const Sums& sums, double beta) {
  const double square = beta * beta;
  // Precision and recall put into the definition, and the fractions brought together.
  return div_no_nan(sums.right * (1 + square), sums.positive * square + sums.predicted);
}

}  // namespace

// The sums are [3, classes]: of positive examples that are predicted, of predictions, of positive
// examples.
FBetaScore::FBetaScore(const FBetaScoreOptions& options, SourceLocation at)
    : Metric(Shape({3, std::max<std::int64_t>(options.num_classes, 0)}, at, "FBetaScore"),
             options.name, at),
      options_(options) {
  constexpr const char* kOp = "FBetaScore";
  require(options.num_classes >= 1, at, kOp, "expected num_classes of 1 or more, got ",
          options.num_classes);
  require(options.beta > 0 && std::isfinite(options.beta), at, kOp, "expected beta above 0, got ",
          options.beta);
  require(std::isfinite(options.threshold.value_or(0)), at, kOp,
          "expected a finite threshold, got ", options.threshold.value_or(0));
  require(options.num_classes > 1 || options.threshold, at, kOp,
          "expected a threshold for one class, which is the largest of each example always");
}

void FBetaScore::update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight,
                              SourceLocation at) {
  constexpr const char* kOp = "FBetaScore::update_state";
  require_step(kOp, at);
  require(labels.rank(at) == 2 && labels.dim(1) == options_.num_classes &&
              predictions.shape(at) == labels.shape(),
          at, kOp, "expected labels and predictions [rows, ", options_.num_classes, "], got ",
          labels.shape(), " and ", predictions.shape());
  const RecorderScope suspended(nullptr);
  const Tensor weights = defined_weights(labels, weight, kOp, at);
  const Tensor predicted =
      options_.threshold ? greater(predictions, *options_.threshold)
                         : equal(predictions, max(predictions, {.axes = {-1}, .keep_dims = true}));
  const Tensor positive = not_equal(cast(labels, DType::f64), 0);
  const auto count = [&](const Tensor& which) {
    return sum(select(which, weights, 0), {.axes = {0}});
  };
  add(stack({count(logical_and(positive, predicted)), count(predicted), count(positive)}), at);
}

Tensor FBetaScore::result(SourceLocation at) const {
  const Tensor all = total(at);
  const RecorderScope suspended(nullptr);
  const auto sums_of = [](const Tensor& x) {
    const std::vector<Tensor> parts = unstack(x);
    return Sums{parts[0], parts[1], parts[2]};
  };
  if (options_.average == ScoreAverage::micro)
    return score(sums_of(sum(all, {.axes = {1}})), options_.beta);
  const Sums sums = sums_of(all);
  const Tensor scores = score(sums, options_.beta);
  switch (options_.average) {
    case ScoreAverage::macro:
      return mean(scores);
    case ScoreAverage::weighted:
      return div_no_nan(sum(scores * sums.positive), sum(sums.positive));
    default:
      return scores;
  }
}

F1Score::F1Score(FBetaScoreOptions options, SourceLocation at)
    : FBetaScore(with_beta_one(std::move(options), at), at) {}

}  // namespace lockstep::metrics
