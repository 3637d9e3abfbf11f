// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/regression.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

// label - prediction in f64.
Tensor difference(const Tensor& labels, const Tensor& predictions, const char* op,
                  SourceLocation at) {
  const Pair pair = in_one_shape(labels, predictions, op, at);
  return cast(pair.labels, DType::f64, at) - cast(pair.predictions, DType::f64, at);
}

}  // namespace

void MeanSquaredError::update_state(const Tensor& labels, const Tensor& predictions,
                                    const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "MeanSquaredError::update_state";
  const RecorderScope suspended(nullptr);
  const Tensor error = square(difference(labels, predictions, kOp, at));
  add_mean(mean_of_example(error), weight, kOp, at);
}

void RootMeanSquaredError::update_state(const Tensor& labels, const Tensor& predictions,
                                        const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "RootMeanSquaredError::update_state";
  const RecorderScope suspended(nullptr);
  const Tensor error = square(difference(labels, predictions, kOp, at));
  add_mean(mean_of_example(error), weight, kOp, at);
}

Tensor RootMeanSquaredError::result(SourceLocation at) const {
  const RecorderScope suspended(nullptr);
  return sqrt(MeanMetric::result(at));
}

void MeanAbsoluteError::update_state(const Tensor& labels, const Tensor& predictions,
                                     const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "MeanAbsoluteError::update_state";
  const RecorderScope suspended(nullptr);
  add_mean(mean_of_example(abs(difference(labels, predictions, kOp, at))), weight, kOp, at);
}

}  // namespace lockstep::metrics
