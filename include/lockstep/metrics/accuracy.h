// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/mean.h>

#include <cstdint>
#include <string>

namespace lockstep::metrics {

// How often predictions are right, over all replicas: means of ones and zeros. Their update_state
// throws as Mean's, and InvalidArgument when labels and predictions do not fit; `weight` goes with
// the examples as with Mean's values.

// How often the largest prediction is the label's.
class LOCKSTEP_EXPORT SparseCategoricalAccuracy : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracy(std::string name = "accuracy",
                                     SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}

  // labels [..] of i32 or i64, predictions (probabilities or logits) [.., classes].
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
};

// The same for labels that are weights of the classes: the largest one is right.
class LOCKSTEP_EXPORT CategoricalAccuracy : public MeanMetric {
 public:
  explicit CategoricalAccuracy(std::string name = "categorical_accuracy",
                               SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}

  // Both [.., classes].
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
};

struct BinaryAccuracyOptions {
  double threshold = 0.5;  // predictions above it say 1; for logits 0
  std::string name = "binary_accuracy";
};

// How often labels of 0 and 1 are predicted. Of several labels [.., labels] an example counts with
// the share of those that are right; numbers [rows] are an example each.
class LOCKSTEP_EXPORT BinaryAccuracy : public MeanMetric {
 public:
  // Throws InvalidArgument for a threshold that is not finite.
  explicit BinaryAccuracy(const BinaryAccuracyOptions& options = {},
                          SourceLocation at = SourceLocation::current());

  // Of one shape, but for a last axis of extent 1 that only one has.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());

 private:
  double threshold_;
};

struct TopKAccuracyOptions {
  std::int64_t k = 5;
  std::string name = "top_k_accuracy";
};

// How often fewer than k classes are predicted above the label's: classes that tie with it do not
// count against it, a prediction for it that is not finite is wrong. (TensorFlow calls all wrong
// where any prediction is not finite; here masked classes may be minus infinity.)
class LOCKSTEP_EXPORT SparseTopKCategoricalAccuracy : public MeanMetric {
 public:
  // Throws InvalidArgument for k below 1.
  explicit SparseTopKCategoricalAccuracy(const TopKAccuracyOptions& options = {},
                                         SourceLocation at = SourceLocation::current());

  // As SparseCategoricalAccuracy's; a label that is no class is InvalidArgument on CPUs.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());

 private:
  std::int64_t k_;
};

// The same for labels that are weights of the classes.
class LOCKSTEP_EXPORT TopKCategoricalAccuracy : public MeanMetric {
 public:
  explicit TopKCategoricalAccuracy(const TopKAccuracyOptions& options = {},
                                   SourceLocation at = SourceLocation::current());

  // As CategoricalAccuracy's.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());

 private:
  std::int64_t k_;
};

}  // namespace lockstep::metrics
