// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/reduce_op.h>
#include <lockstep/base/source_location.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/replica_group.h>
#include <lockstep/telemetry/step_timer.h>
#include <lockstep/tensor/tensor.h>

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

// What a strategy is made of: a ReplicaGroup (where variables live) that can run a function on each
// replica and combine tensors over them. Extend lockstep by implementing it and handing it to
// Strategy.
class LOCKSTEP_EXPORT StrategyInterface : public ReplicaGroup {
 public:
  // Calls replica_fn(local_replica) once per local replica, each in its replica context, and
  // returns when all have returned. `rows` are the rows of the batch, if there is one. The first
  // failure of any replica releases the others and is thrown. Concurrent calls are served one after
  // the other.
  virtual void run(const std::function<void(int local_replica)>& replica_fn,
                   const std::optional<BatchRows>& rows) = 0;
  // The sum or mean over all replicas of all workers, given this process's components in replica
  // order: same dtype and shape everywhere, floating for the mean. Collective across workers.
  virtual Tensor reduce(ReduceOp op, std::span<const Tensor> components, SourceLocation at) = 0;
  // One line for logs: strategy, devices, communication.
  virtual std::string describe() const = 0;
  // Distributed datasets tell how long the caller waited for a batch. Thread-safe.
  virtual void count_input_time(telemetry::PhaseTimes::Clock::duration waited) = 0;
  virtual telemetry::StepReport step_report() const = 0;
  // What random ops draw from in a scope, outside replicas.
  virtual RandomState& scope_random_state() = 0;

  // Numbers the strategy's distributed datasets. Thread-safe.
  int next_dataset_number() { return num_datasets_.fetch_add(1); }

 private:
  std::atomic<int> num_datasets_{0};
};

}  // namespace lockstep
