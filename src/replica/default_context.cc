// SPDX-License-Identifier: Apache-2.0
#include "replica/default_context.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/tensor/placement.h>

#include <utility>

#include "replica/expected_gradients.h"
#include "replica/row_gradients.h"

namespace lockstep {
namespace {

class ReductionOfOne final : public GradientReduction {
 public:
  ReductionOfOne(std::span<const Variable> variables, Tensor& votes, SourceLocation at)
      : expected_(variables, at),
        votes_(votes),
        gradients_(variables.size()),
        rows_(variables.size()) {}
  Buffer place(std::size_t index) override {
    expected_.check_index("place", index);
    return {};
  }
  void ready(std::size_t index, const Tensor& gradient) override {
    expected_.arrived(index, gradient);
    gradients_[index] = gradient;
  }
  void ready(std::size_t index, const IndexedSlices& gradient) override {
    expected_.check_rows(index, gradient);
    if (!better_as_rows(gradient, 1)) return GradientReduction::ready(index, gradient);
    expected_.arrived(index, gradient);
    const IndexedSlices rows = coalesce(gradient);
    gradients_[index] = rows.values;
    rows_[index] = rows.indices;
  }
  ReducedGradients finish() override {
    expected_.check_complete();
    return {std::move(gradients_), taken(votes_), std::move(rows_)};
  }

 private:
  ExpectedGradients expected_;
  Tensor& votes_;
  std::vector<Tensor> gradients_, rows_;
};

class DefaultContext final : public ReplicaContext {
 public:
  int replica_index() const override { return 0; }
  int num_replicas_in_sync() const override { return 1; }
  int local_index() const override { return 0; }
  Tensor all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) override {
    require(value.defined() && value.dtype() != DType::boolean, at, "ReplicaContext::all_reduce",
            "expected a numeric tensor, got ", value.to_string());
    require(op == ReduceOp::sum || is_floating(value.dtype()), at, "ReplicaContext::all_reduce",
            "expected a floating dtype for mean, got ", name_of(value.dtype()));
    return value;
  }
  Tensor all_gather(const Tensor& value, SourceLocation at) override {
    require(value.defined() && value.rank() >= 1, at, "ReplicaContext::all_gather",
            "expected rank >= 1, got ", value.to_string());
    return value;
  }
  std::optional<Rows> batch_rows() const override { return {}; }
  std::unique_ptr<GradientReduction> begin_gradient_reduction(std::span<const Variable> variables,
                                                              SourceLocation at) override {
    return reduction_of_one(variables, votes_, at);
  }
  void invalidate(std::span<const Variable> variables, const std::string& reason) override {
    for (Variable variable : variables) variable.invalidate(reason);
  }
  void merge_all(const std::function<void(std::span<void* const>)>& merge, void* own,
                 SourceLocation) override {
    const RecorderScope suspended(nullptr);
    merge({&own, 1});
  }
};

}  // namespace

GradientReduction::~GradientReduction() = default;

void GradientReduction::ready(std::size_t index, const IndexedSlices& gradient) {
  Tensor dense;
  {
    const Placement there(place(index), gradient.values.dtype(), gradient.shape.num_elements());
    dense = to_dense(gradient);
  }
  ready(index, dense);
}

ReplicaContext& default_replica_context() noexcept {
  static thread_local DefaultContext context;
  return context;
}

Tensor taken(Tensor& votes) {
  if (votes.defined()) return std::exchange(votes, Tensor());
  const DeviceScope host(current_host_device());  // looked at there
  return Tensor(false);
}

std::unique_ptr<GradientReduction> reduction_of_one(std::span<const Variable> variables,
                                                    Tensor& votes, SourceLocation at) {
  return std::make_unique<ReductionOfOne>(variables, votes, at);
}

}  // namespace lockstep
