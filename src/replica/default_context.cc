// SPDX-License-Identifier: Apache-2.0
#include "replica/default_context.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>

#include <utility>

namespace lockstep {
namespace {

class ReductionOfOne final : public GradientReduction {
 public:
  ReductionOfOne(std::size_t num_variables, Tensor skip)
      : skip_(std::move(skip)), gradients_(num_variables) {}
  Buffer place(std::size_t) override { return {}; }
  void ready(std::size_t index, const Tensor& gradient) override {
    gradients_.at(index) = gradient;
  }
  ReducedGradients finish() override { return {std::move(gradients_), std::move(skip_)}; }

 private:
  Tensor skip_;
  std::vector<Tensor> gradients_;
};

class DefaultContext final : public ReplicaContext {
 public:
  int replica_index() const override { return 0; }
  int num_replicas_in_sync() const override { return 1; }
  int local_index() const override { return 0; }
  Tensor all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) override {
    require(op == ReduceOp::sum || is_floating(value.dtype()), at, "ReplicaContext::all_reduce",
            "expected a floating dtype for mean, got ", name_of(value.dtype()));
    return value;
  }
  Tensor all_gather(const Tensor& value, SourceLocation at) override {
    require(value.rank() >= 1, at, "ReplicaContext::all_gather",
            "expected rank >= 1, got a scalar");
    return value;
  }
  std::optional<Rows> batch_rows() const override { return {}; }
  void vote_skip(const Tensor& skip) override {
    skip_ = skip_.defined() ? logical_or(skip_, skip) : skip;
  }
  std::unique_ptr<GradientReduction> begin_gradient_reduction(std::span<const Variable> variables,
                                                              SourceLocation) override {
    return reduction_of_one(variables.size(), std::exchange(skip_, Tensor()));
  }
  void merge_call(const std::function<void()>& merge, SourceLocation) override {
    const RecorderScope suspended(nullptr);
    merge();
  }

 private:
  Tensor skip_;
};

}  // namespace

GradientReduction::~GradientReduction() = default;
ReplicaContext::~ReplicaContext() = default;

Tensor ReplicaContext::global_count(std::int64_t local) { return global_count(Tensor(local)); }
Tensor ReplicaContext::global_count(const Tensor& local) {
  const RecorderScope suspended(nullptr);
  return all_reduce(ReduceOp::sum, local);
}

ReplicaContext& default_replica_context() noexcept {
  static thread_local DefaultContext context;
  return context;
}

std::unique_ptr<GradientReduction> reduction_of_one(std::size_t num_variables, Tensor skip) {
  return std::make_unique<ReductionOfOne>(num_variables,
                                          skip.defined() ? std::move(skip) : Tensor(false));
}

}  // namespace lockstep
