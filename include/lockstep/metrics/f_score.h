// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/metric.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::metrics {

// How the scores of classes become one: not, from the sums over all classes, their mean, their mean
// weighted by the positive examples of each.
enum class ScoreAverage { none, micro, macro, weighted };

struct FBetaScoreOptions {
  std::int64_t num_classes = 0;  // 1 or more
  ScoreAverage average = ScoreAverage::none;
  double beta = 1;  // recall counts beta times as much as precision
  // A prediction above it is positive; nothing: the largest of each example is, and those equal to it.
  std::optional<double> threshold = {};
  std::string name = "f_beta_score";
};

// (1 + beta^2) precision recall / (beta^2 precision + recall) of each class.
class LOCKSTEP_EXPORT FBetaScore : public Metric {
 public:
  // Throws InvalidArgument for num_classes below 1, beta that is not above 0, a threshold that is not
  // finite, and for one class without a threshold.
  explicit FBetaScore(const FBetaScoreOptions& options,
                      SourceLocation at = SourceLocation::current());

  // Both [rows, num_classes]; an example is of each class whose label is not 0. `weight` [rows] or
  // a scalar. Throws as Mean's.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // f64, a scalar, or without averaging [num_classes]; 0 for a class without positives. A
  // collective, as Mean's.
  Tensor result(SourceLocation at = SourceLocation::current()) const;

 private:
  FBetaScoreOptions options_;
};

// With beta = 1: the harmonic mean of precision and recall.
class LOCKSTEP_EXPORT F1Score : public FBetaScore {
 public:
  // Throws as FBetaScore's, and InvalidArgument for another beta.
  explicit F1Score(FBetaScoreOptions options, SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep::metrics
