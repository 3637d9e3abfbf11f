// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/replica_context.h>
#include <lockstep/telemetry/step_timer.h>

#include <string>
#include <utility>
#include <vector>

#include "distribute/baton.h"
#include "distribute/gradient_plan.h"
#include "distribute/gradient_reduction.h"

namespace lockstep {

// One replica of this process: the context that step functions see. Used by the replica's thread.
class alignas(64) Replica final : public ReplicaContext {
 public:
  struct Place {
    int local = 0;  // its number in this process
    int global = 0;
    int num_replicas = 0;
  };
  // `baton` is what replicas that run one at a time take turns by, else null. `handed_over` has a
  // place for what each local replica brings to a merge_call.
  Replica(Place place, std::uint64_t seed, const ReplicaLinks& links, Baton* baton,
          GradientPlans& plans, std::span<void*> handed_over);

  int replica_index() const override { return place_.global; }
  int num_replicas_in_sync() const override { return place_.num_replicas; }
  int local_index() const override { return place_.local; }
  Tensor all_reduce(ReduceOp op, const Tensor& value, SourceLocation at) override;
  Tensor all_gather(const Tensor& value, SourceLocation at) override;
  std::optional<Rows> batch_rows() const override { return rows_; }
  std::unique_ptr<GradientReduction> begin_gradient_reduction(std::span<const Variable> variables,
                                                              SourceLocation at) override;
  void invalidate(std::span<const Variable> variables, const std::string& reason) override;
  void merge_all(const std::function<void(std::span<void* const>)>& merge, void* own,
                 SourceLocation at) override;

  // A run begins and ends; its number is the same for all replicas; `rows` may be null.
  void begin_step(std::uint64_t run, const BatchRows* rows);
  void end_step();
  // Once all replicas' steps are over: does what invalidate was told.
  void settle();
  RandomState& random_state() { return random_; }
  telemetry::PhaseTimes& times() { return times_; }

 private:
  // Throws FailedPrecondition unless the calling thread is in this replica's step.
  void require_here(const char* op, SourceLocation at) const;
  // `name` must outlive the key.
  CollectiveKey next_key(std::string_view name, SourceLocation at);
  // Waits for a collective, a meeting point; the time is exposed communication.
  void wait(Pending pending);
  Tensor reduced(ReduceOp op, const Tensor& value, SourceLocation at);
  // The same in the streams of an accelerator.
  Tensor reduced_on_device(const CollectiveKey& key, ReduceOp op, const Tensor& value);
  Tensor gathered(const Tensor& value, SourceLocation at);

  const Place place_;
  const ReplicaLinks links_;
  Baton* const baton_;
  GradientPlans& plans_;
  const std::span<void*> handed_over_;  // written before the barrier that begins a merge_call
  RandomState random_;
  telemetry::PhaseTimes times_;
  std::uint64_t run_ = 0;
  std::optional<Rows> rows_;
  std::vector<std::pair<std::vector<Variable>, std::string>>
      broken_;  // what to invalidate, and why
  // Calls made so far in this step. What replicas must do in one order (all_reduce, merge_call, a
  // commit point) is numbered together, so that one who does another thing is found out.
  std::int64_t sequence_ = 0;
};

}  // namespace lockstep
