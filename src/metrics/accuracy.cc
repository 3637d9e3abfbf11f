// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/accuracy.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

namespace lockstep::metrics {

void SparseCategoricalAccuracy::update_state(const Tensor& labels, const Tensor& predictions,
                                             const Tensor& weight, SourceLocation at) {
  require(is_integer(labels.dtype()) && predictions.rank() == labels.rank() + 1 &&
              predictions.shape().without_axis(-1) == labels.shape(),
          at, "SparseCategoricalAccuracy",
          "expected integer labels [..] and predictions [.., classes], got ",
          name_of(labels.dtype()), labels.shape(), " and ", predictions.shape());
  const RecorderScope suspended(nullptr);
  const Tensor right = equal(argmax(predictions, -1, at), cast(labels, DType::i64, at));
  mean_.update_state(right, weight, at);
}

}  // namespace lockstep::metrics
