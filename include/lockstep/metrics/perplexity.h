// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/mean.h>

#include <string>

namespace lockstep::metrics {

// exp of the mean cross entropy of tokens: of how many equally likely ones a model is in doubt. 1 when
// nothing was seen.
class LOCKSTEP_EXPORT Perplexity : public MeanMetric {
 public:
  explicit Perplexity(std::string name = "perplexity",
                      SourceLocation at = SourceLocation::current())
      : MeanMetric(std::move(name), at) {}
  // labels [..] of i32 or i64, logits [.., tokens]: throws as sparse_softmax_cross_entropy, too.
  // `weight` goes with the labels; 0 leaves out what is no text.
  void update_state(const Tensor& labels, const Tensor& logits, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  Tensor result(SourceLocation at = SourceLocation::current()) const;
};

}  // namespace lockstep::metrics
