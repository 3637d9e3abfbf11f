// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/random_scope.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/replica_context.h>

namespace lockstep {

// What a step function that is being traced sees as its replica. Collectives are instructions of
// the program.
class TracedReplica final : public ReplicaContext {
 public:
  TracedReplica(int index, int num_replicas, std::uint64_t seed);

  int replica_index() const override { return index_; }
  int num_replicas_in_sync() const override { return num_replicas_; }
  int local_index() const override { return index_; }
  Tensor all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) override;
  Tensor all_gather(const Tensor& value, SourceLocation at) override;
  std::optional<Rows> batch_rows() const override { return rows_; }
  std::optional<CountedRows> counted_rows(std::int64_t rows) const override;
  Tensor take_vote() override;
  std::unique_ptr<GradientReduction> begin_gradient_reduction(std::span<const Variable> variables,
                                                              SourceLocation at) override;
  void merge_all(const std::function<void(std::span<void* const>)>& merge, void* own,
                 SourceLocation at) override;
  // A step that fails is not executed: its variables keep their values.
  void invalidate(std::span<const Variable>, const std::string&) override {}

  // `rows` may be null.
  void begin_step(const BatchRows* rows);
  void end_step();
  RandomState& random_state() { return random_; }

 private:
  const int index_;
  const int num_replicas_;
  RandomState random_;
  std::optional<Rows> rows_;
  std::int64_t padded_rows_ = 0;
};

}  // namespace lockstep
