// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/hierarchical.h>
#include <lockstep/distribute/extension.h>
#include <lockstep/distribute/options.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/stream_group.h"
#include "distribute/baton.h"
#include "distribute/communicator_workers.h"
#include "distribute/gradient_plan.h"
#include "distribute/replica.h"
#include "distribute/thread_team.h"

namespace lockstep {

// What connects the processes of several workers. Nothing: this one is alone.
struct WorkerLink {
  std::shared_ptr<void> owner;  // of the communicator
  Communicator* communicator = nullptr;
  // Called on every worker before and after each run: what was called before is not met by what is
  // called after. Throws the reason when the link has failed.
  std::function<void()> next_epoch;

  explicit operator bool() const { return communicator != nullptr; }
};

// The replicas of one process, a persistent thread each (the caller's is local replica 0): what the
// mirrored strategies and OneDeviceStrategy are made of. With a link they are this worker's part of
// the replicas of all workers.
class LocalReplicas final : public StrategyInterface,
                            public std::enable_shared_from_this<LocalReplicas> {
 public:
  struct Options {
    std::string name;
    std::vector<Device> devices;
    ReplicaThreads replica_threads = ReplicaThreads::concurrent;
    CrossDeviceOps cross_device_ops = CrossDeviceOps::automatic;
    CommunicationOptions communication;
    std::uint64_t seed = 0;
    WorkerLink link = {};
  };
  explicit LocalReplicas(Options options);
  ~LocalReplicas() override;

  std::span<const Device> local_devices() const override { return options_.devices; }
  int num_replicas_in_sync() const override { return workers_->size() * num_local(); }
  WorkerGroup& workers() override { return *workers_; }
  bool run_active() const override { return running_.load(std::memory_order_acquire); }
  Tensor broadcast_initial_value(std::string_view name, Tensor value, SourceLocation at) override;

  void run(const std::function<void(int)>& replica_fn,
           const std::optional<BatchRows>& rows) override;
  Tensor reduce(ReduceOp op, std::span<const Tensor> components, SourceLocation at) override;
  std::string describe() const override;
  void count_input_time(telemetry::PhaseTimes::Clock::duration waited) override;
  telemetry::StepReport step_report() const override;
  RandomState& scope_random_state() override { return scope_random_; }

 private:
  using Clock = telemetry::PhaseTimes::Clock;

  bool link_is_the_parents() const { return linked_workers_ && linked_workers_->forked(); }
  int num_local() const { return static_cast<int>(options_.devices.size()); }
  int global_id(int local_replica) const { return workers_->rank() * num_local() + local_replica; }

  // The first failure of a run, and whose it was.
  struct Failure {
    std::exception_ptr error;
    int replica = 0;  // local
  };
  void run_replica(int replica, const std::function<void(int)>& replica_fn,
                   const BatchRows* rows) noexcept;
  std::unique_lock<std::mutex> await_turn();
  // Of accelerators; null for CPUs and for one replica.
  std::unique_ptr<StreamGroup> stream_group();
  void fail(int replica, const std::exception_ptr& error) noexcept;
  std::exception_ptr with_place(int replica, const std::exception_ptr& error) const noexcept;
  void rethrow(const Failure& failure) const;

  const Options options_;
  std::optional<CommunicatorWorkers> linked_workers_;
  WorkerGroup* const workers_;
  std::unique_ptr<Baton> baton_;  // null: concurrent
  HierarchicalGroup group_;
  std::unique_ptr<StreamGroup> streams_;  // see stream_group()
  GradientPlans plans_;
  std::vector<void*> handed_over_;  // to a merge_call, by each replica
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
