// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/in_process.h>
#include <lockstep/distribute/extension.h>
#include <lockstep/distribute/options.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distribute/baton.h"
#include "distribute/gradient_plan.h"
#include "distribute/replica.h"
#include "distribute/thread_team.h"

namespace lockstep {

// The replicas of one process, a persistent thread each (the caller's is replica 0): what
// MirroredStrategy and OneDeviceStrategy are made of.
class LocalReplicas final : public StrategyInterface,
                            public std::enable_shared_from_this<LocalReplicas> {
 public:
  struct Options {
    std::string name;
    std::vector<Device> devices;
    ReplicaThreads replica_threads = ReplicaThreads::concurrent;
    CommunicationOptions communication;
    std::uint64_t seed = 0;
  };
  explicit LocalReplicas(Options options);
  ~LocalReplicas() override;

  std::span<const Device> local_devices() const override { return options_.devices; }
  int num_replicas_in_sync() const override { return static_cast<int>(options_.devices.size()); }
  WorkerGroup& workers() override { return single_worker(); }
  bool run_active() const override { return running_.load(std::memory_order_acquire); }
  Tensor broadcast_initial_value(std::string_view, Tensor value) override { return value; }

  void run(const std::function<void(int)>& replica_fn,
           const std::optional<BatchRows>& rows) override;
  Tensor reduce(ReduceOp op, std::span<const Tensor> components) override;
  std::string describe() const override;
  void count_input_time(telemetry::PhaseTimes::Clock::duration waited) override;
  telemetry::StepReport step_report() const override;
  RandomState& scope_random_state() override { return scope_random_; }

 private:
  using Clock = telemetry::PhaseTimes::Clock;

  // The first failure of a run, and whose it was.
  struct Failure {
    std::exception_ptr error;
    int replica = 0;
  };
  void run_replica(int replica, const std::function<void(int)>& replica_fn,
                   const BatchRows* rows) noexcept;
  std::unique_lock<std::mutex> await_turn();
  void fail(int replica, const std::exception_ptr& error) noexcept;
  static void rethrow(const Failure& failure);

  const Options options_;
  std::unique_ptr<Baton> baton_;  // null: concurrent
  InProcessGroup group_;
  GradientPlans plans_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  RandomState scope_random_;

  std::mutex run_mutex_;  // held during a run
  std::atomic<std::thread::id> runner_{};
  std::atomic<bool> running_{false};
  std::mutex failure_mutex_;
  std::optional<Failure> failure_;

  std::atomic<Clock::rep> input_time_{0}, run_time_{0};
  std::atomic<Clock::rep> first_start_{0}, last_end_{0};
  std::atomic<std::int64_t> steps_{0};

  ThreadTeam team_;  // last: its threads use everything above
};

}  // namespace lockstep
