// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/extension.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/xla/program.h"
#include "distribute/traced_replica.h"

namespace lockstep {

// The replicas of TPUStrategy: the step function is traced for each of them in the caller's thread,
// and what they traced is one program, run on all devices at once.
class TracedReplicas final : public StrategyInterface,
                             public std::enable_shared_from_this<TracedReplicas> {
 public:
  TracedReplicas(const xla::Client& client, int replicas, std::uint64_t seed);

  std::span<const Device> local_devices() const override { return devices_; }
  int num_replicas_in_sync() const override { return static_cast<int>(devices_.size()); }
  WorkerGroup& workers() override { return single_worker(); }
  bool run_active() const override { return running_.load(std::memory_order_acquire); }
  Tensor broadcast_initial_value(std::string_view, Tensor value, SourceLocation) override {
    return value;
  }

  void run(const std::function<void(int)>& replica_fn,
           const std::optional<BatchRows>& rows) override;
  Tensor reduce(ReduceOp op, std::span<const Tensor> components, SourceLocation at) override;
  std::string describe() const override;
  void count_input_time(telemetry::PhaseTimes::Clock::duration waited) override;
  telemetry::StepReport step_report() const override;
  RandomState& scope_random_state() override { return scope_random_; }

  // For tests.
  const xla::Programs& programs() const { return programs_; }

 private:
  using Clock = telemetry::PhaseTimes::Clock;
  using Traces = std::vector<std::unique_ptr<xla::Trace>>;

  void step(const std::function<void(int)>& replica_fn, const BatchRows* rows);
  void trace(int replica, const std::function<void(int)>& replica_fn, const BatchRows* rows,
             Traces& traces);
  void fail(std::optional<int> replica, Traces& traces);

  const xla::Client& client_;
  std::vector<Device> devices_;
  std::vector<std::unique_ptr<TracedReplica>> replicas_;
  RandomState scope_random_;
  xla::Programs programs_;

  std::timed_mutex run_mutex_;  // held during a run
  std::atomic<bool> running_{false};
  std::atomic<Clock::rep> input_time_{0}, trace_time_{0}, run_time_{0};
  std::atomic<Clock::rep> first_start_{0}, last_end_{0};
  std::atomic<std::int64_t> steps_{0};
};

}  // namespace lockstep
