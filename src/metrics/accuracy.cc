// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/accuracy.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <cmath>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

void require_k(std::int64_t k, const char* op, SourceLocation at) {
  require(k >= 1, at, op, "expected k of 1 or more, got ", k);
}

// Whether fewer than k predictions are above that of the label's class.
Tensor in_top_k(const Tensor& labels, const Tensor& predictions, std::int64_t k,
                SourceLocation at) {
  const Tensor own = take_along_axis(predictions, expand_dims(labels, -1), -1, at);
  const Tensor above = sum(cast(greater(predictions, own), DType::i64), {.axes = {-1}});
  return logical_and(less(above, k), is_finite(squeeze(own, {-1})));
}

Tensor largest(const Tensor& x, const char* op, SourceLocation at) {
  require(x.rank(at) >= 1 && x.dim(-1) >= 1, at, op, "expected [.., classes], got ", x.shape());
  return argmax(x, -1, at);
}

void require_dense(const Tensor& labels, const Tensor& predictions, const char* op,
                   SourceLocation at) {
  require(labels.shape(at) == predictions.shape(at), at, op,
          "expected labels and predictions [.., classes] of one shape, got ", labels.shape(),
          " and ", predictions.shape());
}

}  // namespace

void SparseCategoricalAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                             const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "SparseCategoricalAccuracy::update_state";
  require_sparse(labels, predictions, kOp, at);
  const RecorderScope suspended(nullptr);
  add_mean(equal(argmax(predictions, -1, at), cast(labels, DType::i64, at)), weight, kOp, at);
}

void CategoricalAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                       const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "CategoricalAccuracy::update_state";
  require_dense(labels, predictions, kOp, at);
  const RecorderScope suspended(nullptr);
  add_mean(equal(largest(predictions, kOp, at), largest(labels, kOp, at)), weight, kOp, at);
}

BinaryAccuracy::BinaryAccuracy(const BinaryAccuracyOptions& options, SourceLocation at)
    : MeanMetric(options.name, at), threshold_(options.threshold) {
  require(std::isfinite(threshold_), at, "BinaryAccuracy", "expected a finite threshold, got ",
          threshold_);
}

void BinaryAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                  const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "BinaryAccuracy::update_state";
  const RecorderScope suspended(nullptr);
  const Pair pair = in_one_shape(labels, predictions, kOp, at);
  const Tensor right =
      equal(cast(greater(pair.predictions, threshold_), DType::f64), cast(pair.labels, DType::f64));
  add_mean(mean_of_example(cast(right, DType::f64)), weight, kOp, at);
}

SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(const TopKAccuracyOptions& options,
                                                             SourceLocation at)
    : MeanMetric(options.name, at), k_(options.k) {
  require_k(k_, "SparseTopKCategoricalAccuracy", at);
}

void SparseTopKCategoricalAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                                 const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "SparseTopKCategoricalAccuracy::update_state";
  require_sparse(labels, predictions, kOp, at);
  const RecorderScope suspended(nullptr);
  add_mean(in_top_k(labels, predictions, k_, at), weight, kOp, at);
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(const TopKAccuracyOptions& options,
                                                 SourceLocation at)
    : MeanMetric(options.name, at), k_(options.k) {
  require_k(k_, "TopKCategoricalAccuracy", at);
}

void TopKCategoricalAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                           const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "TopKCategoricalAccuracy::update_state";
  require_dense(labels, predictions, kOp, at);
  const RecorderScope suspended(nullptr);
  add_mean(in_top_k(largest(labels, kOp, at), predictions, k_, at), weight, kOp, at);
}

}  // namespace lockstep::metrics
