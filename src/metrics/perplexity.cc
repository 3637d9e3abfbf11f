// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/perplexity.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/softmax.h>

namespace lockstep::metrics {

void Perplexity::update_state(const Tensor& labels, const Tensor& logits, const Tensor& weight,
                              SourceLocation at) {
  const RecorderScope suspended(nullptr);
  add_mean(sparse_softmax_cross_entropy(labels, logits, at), weight, "Perplexity::update_state",
           at);
}

Tensor Perplexity::result(SourceLocation at) const {
  const RecorderScope suspended(nullptr);
  return exp(MeanMetric::result(at));
}

}  // namespace lockstep::metrics
