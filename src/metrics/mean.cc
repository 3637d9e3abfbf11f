// SPDX-License-Identifier: Apache-2.0
#include <lockstep/metrics/mean.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <utility>

#include "metrics/counting.h"
#include "replica/counted_rows.h"

namespace lockstep::metrics {
namespace {

// The sum of values times weights, without what padding holds.
Tensor weighted_sum(const Tensor& exact, const Tensor& weights) {
  if (!weights.defined()) return sum(exact);
  const Tensor total = exact * weights;
  const auto counted = counted_rows_of(exact);
  return sum(counted ? without_padding(total, *counted) : total);
}

}  // namespace

MeanMetric::MeanMetric(std::string name, SourceLocation at) : Metric({2}, std::move(name), at) {}

void MeanMetric::add_mean(const Tensor& values, const Tensor& weight, const char* op,
                          SourceLocation at) {
  require_step(op, at);
  const RecorderScope suspended(nullptr);
  const Tensor exact = cast(values, DType::f64, at);
  const Tensor weights = counting_weights(exact, weight, op, at);
  const Tensor count =
      weights.defined() ? sum(weights) : Tensor(static_cast<double>(exact.num_elements()));
  add(stack({weighted_sum(exact, weights), count}), at);
}

Tensor MeanMetric::result(SourceLocation at) const {
  const std::vector<Tensor> parts = unstack(total(at));
  const RecorderScope suspended(nullptr);
  return div_no_nan(parts[0], parts[1]);
}

void Sum::update_state(const Tensor& values, const Tensor& weight, SourceLocation at) {
  constexpr const char* kOp = "Sum::update_state";
  require_step(kOp, at);
  const RecorderScope suspended(nullptr);
  const Tensor exact = cast(values, DType::f64, at);
  add(weighted_sum(exact, counting_weights(exact, weight, kOp, at)), at);
}

}  // namespace lockstep::metrics
