// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/confusion_matrix.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <span>
#include <utility>

#include "metrics/counting.h"

namespace lockstep::metrics {
namespace {

// Where the host can tell; elsewhere those outside are not counted.
void require_classes(const char* what, const Tensor& classes, std::int64_t num_classes,
                     const char* op, SourceLocation at) {
  if (!classes.device().is_host()) return;
  const std::span<const std::int64_t> all = classes.data<std::int64_t>();
  const auto outside = std::find_if(all.begin(), all.end(),
                                    [&](std::int64_t c) { return c < 0 || c >= num_classes; });
  require(outside == all.end(), at, op, "expected ", what, " from 0 to ", num_classes - 1, ", got ",
          outside == all.end() ? 0 : *outside, " at place ", outside - all.begin(),
          "; leave such examples out, or give the matrix more classes");
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(std::int64_t num_classes, std::string name, SourceLocation at)
    : Metric(Shape({std::max<std::int64_t>(num_classes, 0), std::max<std::int64_t>(num_classes, 0)},
                   at, "ConfusionMatrix"),
             std::move(name), at),
      num_classes_(num_classes) {
  require(num_classes >= 1, at, "ConfusionMatrix", "expected 1 class or more, got ", num_classes);
}

void ConfusionMatrix::update_state(const Tensor& labels, const Tensor& predictions,
                                   const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "ConfusionMatrix::update_state";
  require_step(kOp, at);
  const bool scores = predictions.rank(at) == labels.rank(at) + 1;
  require(is_integer(labels.dtype(at)) &&
              (scores ? predictions.dim(-1) == num_classes_ &&
                            predictions.shape().without_axis(-1) == labels.shape()
                      : is_integer(predictions.dtype(at)) && predictions.shape() == labels.shape()),
          at, kOp, "expected integer labels [..] and predictions the same or [.., ", num_classes_,
          "], got ", name_of(labels.dtype()), labels.shape(), " and ", name_of(predictions.dtype()),
          predictions.shape());
  const RecorderScope suspended(nullptr);
  const Tensor classes = cast(labels, DType::i64);
  const Tensor taken_for = scores ? argmax(predictions, -1, at) : cast(predictions, DType::i64);
  require_classes("labels", classes, num_classes_, kOp, at);
  require_classes("predictions", taken_for, num_classes_, kOp, at);
  add(scatter_nd(stack({classes, taken_for}, -1), defined_weights(labels, weight, kOp, at),
                 {num_classes_, num_classes_}, at),
      at);
}

}  // namespace lockstep::metrics
