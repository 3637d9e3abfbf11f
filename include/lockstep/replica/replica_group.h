// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/device/device.h>
#include <lockstep/replica/worker_group.h>
#include <lockstep/tensor/tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

// The replicas of a strategy as variables see them: how many components a variable has in this
// process, where they live and where their first value comes from. Implemented by strategies.
class LOCKSTEP_EXPORT ReplicaGroup {
 public:
  virtual ~ReplicaGroup();
  // Devices of this process's replicas, in replica order; never empty.
  virtual std::span<const Device> local_devices() const = 0;
  virtual int num_replicas_in_sync() const = 0;
  virtual WorkerGroup& workers() = 0;
  // Replicas are running a step now.
  virtual bool run_active() const = 0;
  // The chief's value of a new variable, on every worker; collective across workers.
  virtual Tensor broadcast_initial_value(std::string_view name, Tensor value,
                                         SourceLocation at) = 0;
  // Counts the variables made; the same on every worker, as all run one program.
  std::int64_t next_variable_number() noexcept { return variables_++; }

 private:
  std::atomic<std::int64_t> variables_{0};
};

// The group that variables made by the calling thread belong to: the innermost open scope's, or
// that of the replica context; null outside.
LOCKSTEP_EXPORT const std::shared_ptr<ReplicaGroup>& current_replica_group() noexcept;

}  // namespace lockstep
