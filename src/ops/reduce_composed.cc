// SPDX-License-Identifier: Apache-2.0
// Reductions that are made of others.
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include "ops/half_kernels.h"
#include "ops/reduce_plan.h"

namespace lockstep {
namespace {

void require_floating(const char* op, const Tensor& x, SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()), op, x, "a floating dtype (cast others first)", at);
}

// The plan's reduction with its axes kept. Of no axes it is x's every element.
ReduceOptions kept_of(const ReducePlan& plan) {
  return {.axes = plan.axes<int>(), .keep_dims = true};
}

// The largest element is subtracted first, unless it is infinite.
Tensor log_of_sum(const Tensor& x, const ReducePlan& plan) {
  const RecorderScope unrecorded(nullptr);
  if (x.num_elements() == 0) return log(sum(x, kept_of(plan)));
  const Tensor largest = max(x, kept_of(plan));
  const Tensor shift = select(is_finite(largest), largest, 0);
  return log(sum(exp(x - shift), kept_of(plan))) + shift;
}

Tensor variance_of(const char* op, const Tensor& x, const ReduceOptions& options,
                   SourceLocation at) {
  const ReducePlan plan(op, x.shape(), options, at);
  Tensor y;
  {
    const RecorderScope unrecorded(nullptr);
    y = reshape(mean(squared_difference(x, mean(x, kept_of(plan))), kept_of(plan)), plan.result);
  }
  record(op, {&x}, y, [x, plan](const Tensor& dy, GradientSink& sink) {
    if (!sink.wants(0)) return;
    const Tensor each = reshape(dy, plan.kept) * (2 / static_cast<double>(plan.count));
    const Tensor apart = x - mean(x, kept_of(plan));
    sink.put(0, [&] { return each * apart; });
  });
  return y;
}

// f(x), in f32 where x is of 16 bits.
template <class F>
Tensor widely(const Tensor& x, SourceLocation at, F&& f) {
  return is_half(x.dtype()) ? cast(f(cast(x, DType::f32, at)), x.dtype(), at) : f(x);
}

}  // namespace

Tensor logsumexp(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  require_floating("logsumexp", x, at);
  return widely(x, at, [&](const Tensor& wide) {
    const ReducePlan plan("logsumexp", wide.shape(), options, at);
    Tensor y = log_of_sum(wide, plan).with_shape(plan.result);
    record("logsumexp", {&wide}, y, [wide, y, plan](const Tensor& dy, GradientSink& sink) {
      if (!sink.wants(0)) return;
      const Tensor shares = exp(wide - reshape(y, plan.kept));
      sink.put(0, [&] { return reshape(dy, plan.kept) * shares; });
    });
    return y;
  });
}

Tensor variance(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  require_floating("variance", x, at);
  return widely(x, at,
                [&](const Tensor& wide) { return variance_of("variance", wide, options, at); });
}

Tensor stddev(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  require_floating("stddev", x, at);
  return widely(x, at, [&](const Tensor& wide) {
    return sqrt(variance_of("stddev", wide, options, at), at);
  });
}

}  // namespace lockstep
