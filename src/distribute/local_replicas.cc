// SPDX-License-Identifier: Apache-2.0
#include "distribute/local_replicas.h"

#include <lockstep/base/check.h>
#include <lockstep/base/deadline.h>
#include <lockstep/base/log.h>
#include <lockstep/base/thread.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include <utility>

#include "replica/sum_components.h"

namespace lockstep {
namespace {

// Random numbers of scopes: a stream that is no replica's.
constexpr std::uint64_t kScopeStream = ~std::uint64_t{0};

}  // namespace

LocalReplicas::LocalReplicas(Options options)
    : options_(std::move(options)),
      linked_workers_(options_.link ? std::optional<CommunicatorWorkers>(
                                          std::in_place, *options_.link.communicator)
                                    : std::nullopt),
      workers_(linked_workers_ ? &*linked_workers_ : &single_worker()),
      baton_(options_.replica_threads == ReplicaThreads::one_at_a_time
                 ? std::make_unique<Baton>(num_local())
                 : nullptr),
      group_(num_local(), options_.link.communicator,
             {.collective_timeout = options_.communication.timeout, .wait_policy = baton_.get()}),
      streams_(stream_group()),
      plans_(options_.devices,
             {options_.communication.bytes_per_pack, options_.communication.num_packs}),
      handed_over_(options_.devices.size()),
      scope_random_{.seed = options_.seed, .stream = kScopeStream},
      team_(num_local()) {
  for (int i = 0; i < num_local(); ++i) {
    const ReplicaLinks links{.host = group_.local_rank(i),
                             .streams = streams_ ? &streams_->rank(i) : nullptr,
                             .device = options_.devices[static_cast<std::size_t>(i)]};
    replicas_.push_back(
        std::make_unique<Replica>(Replica::Place{i, global_id(i), num_replicas_in_sync()},
                                  options_.seed, links, baton_.get(), plans_, handed_over_));
  }
}

LocalReplicas::~LocalReplicas() {
  // Its threads are the parent's; ending it would wait for them.
  if (link_is_the_parents())
    new WorkerLink(options_.link);  // NOLINT(bugprone-unhandled-exception-at-new)
}

std::unique_ptr<StreamGroup> LocalReplicas::stream_group() {
  if (options_.devices[0].is_host()) {
    if (options_.cross_device_ops == CrossDeviceOps::nccl_all_reduce)
      throw FailedPrecondition(
          message(options_.name, "CrossDeviceOps::nccl_all_reduce is for GPUs, got ",
                  options_.devices[0], "; leave it to CrossDeviceOps::automatic"),
          SourceLocation{});
    return nullptr;
  }
  if (options_.link)
    throw Unimplemented(message(options_.name, "several workers train on CPUs only, got ",
                                options_.devices[0], "; use MirroredStrategy on one machine"),
                        SourceLocation{});
  if (num_local() == 1) return nullptr;
  std::vector<Communicator*> hosts;
  hosts.reserve(options_.devices.size());
  for (int i = 0; i < num_local(); ++i) hosts.push_back(&group_.local_rank(i));
  return std::make_unique<StreamGroup>(
      hosts, make_stream_collectives(options_.cross_device_ops, options_.devices, hosts));
}

void LocalReplicas::run(const std::function<void(int)>& replica_fn,
                        const std::optional<BatchRows>& rows) {
  if (runner_.load(std::memory_order_relaxed) == std::this_thread::get_id())
    throw FailedPrecondition(
        "[Strategy::run] expected no active run, got a call from a merge_call of one",
        SourceLocation{});
  if (team_.lost_by_fork() || link_is_the_parents())
    throw FailedPrecondition(
        "[Strategy::run] the strategy was made before fork() and its threads stayed with the parent; "
        "make a strategy in the child",
        SourceLocation{});
  const std::unique_lock serialized = await_turn();
  if (options_.link) options_.link.next_epoch();
  group_.begin_epoch();  // throws when somebody kept a reduction of the last run
  if (streams_) streams_->begin_epoch();
  const Clock::time_point start = Clock::now();
  if (steps_.fetch_add(1, std::memory_order_relaxed) == 0 && first_start_ == 0)
    first_start_ = start.time_since_epoch().count();
  plans_.begin_run(static_cast<std::uint64_t>(steps_.load(std::memory_order_relaxed)));
  runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);
  if (baton_) baton_->reset();
  const BatchRows* const step_rows = rows ? &*rows : nullptr;
  const auto replica = [&](int index) { run_replica(index, replica_fn, step_rows); };
  team_.run(std::ref(replica));
  for (const auto& each : replicas_) each->settle();
  running_.store(false, std::memory_order_release);
  runner_.store({}, std::memory_order_relaxed);
  const Clock::time_point end = Clock::now();
  run_time_.fetch_add((end - start).count(), std::memory_order_relaxed);
  last_end_ = end.time_since_epoch().count();
  if (failure_) rethrow(*std::exchange(failure_, std::nullopt));
  if (options_.link) options_.link.next_epoch();
}

// The right to run. Bounded, because who holds it may wait for the caller: a step function that joins a
// thread which calls run.
std::unique_lock<std::mutex> LocalReplicas::await_turn() {
  std::unique_lock lock(run_mutex_, std::try_to_lock);
  if (linked_workers_ && !lock.owns_lock())
    throw FailedPrecondition(
        "[Strategy::run] another thread is in a run of this strategy; several workers must make all "
        "runs in one order: call it from one thread",
        SourceLocation{});
  const Deadline deadline = Deadline::after(options_.communication.timeout);
  for (Backoff backoff(false); !lock.owns_lock(); lock.try_lock()) {
    if (backoff.pause() && deadline.passed())
      throw DeadlineExceeded(
          message(
              "Strategy::run", "waited ", options_.communication.timeout.count(),
              " ms for another run of this strategy to end; does its step function wait for this "
              "thread? Raise CommunicationOptions::timeout if a step takes so long"),
          SourceLocation{});
  }
  return lock;
}

void LocalReplicas::run_replica(int index, const std::function<void(int)>& replica_fn,
                                const BatchRows* rows) noexcept {
  Replica& replica = *replicas_[static_cast<std::size_t>(index)];
  if (baton_) baton_->acquire(index);
  const ContextScope context(shared_from_this(), replica);
  const DeviceScope device(options_.devices[static_cast<std::size_t>(index)]);
  const RandomScope random(replica.random_state());
  const RecorderScope no_recorder(nullptr);
  const Placement no_placement({}, DType::f32, 0);
  const telemetry::PhaseTimesScope times(&replica.times());
  replica.times().start(telemetry::Phase::compute);
  replica.begin_step(static_cast<std::uint64_t>(steps_.load(std::memory_order_relaxed)), rows);
  try {
    replica_fn(index);
  } catch (...) {
    fail(index, std::current_exception());
  }
  replica.end_step();
  replica.times().stop();
  group_.returned(index);
  if (baton_) baton_->leave(index);
}

void LocalReplicas::fail(int replica, const std::exception_ptr& error) noexcept {
  const std::exception_ptr located = with_place(replica, error);
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = Failure{located, replica};
  }
  (streams_ ? streams_->rank(replica) : group_.local_rank(replica)).abort(located);
}

// The error, which says where it arose unless it came from elsewhere.
std::exception_ptr LocalReplicas::with_place(int replica,
                                             const std::exception_ptr& error) const noexcept {
  try {
    try {
      std::rethrow_exception(error);
    } catch (const Error& ours) {
      ErrorContext context = ours.context();
      if (!context.replica) context.replica = global_id(replica);
      if (!context.step) context.step = steps_.load(std::memory_order_relaxed);
      ours.rethrow_with(std::move(context));
    }
  } catch (...) {
    return std::current_exception();
  }
  return error;
}

void LocalReplicas::rethrow(const Failure& failure) const {
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    logging::error("replica " + std::to_string(global_id(failure.replica)) +
                   " threw: " + error.what());
    throw;
  } catch (...) {
    logging::error("replica " + std::to_string(global_id(failure.replica)) +
                   " threw something that is no std::exception");
    throw;
  }
}

Tensor LocalReplicas::reduce(ReduceOp op, std::span<const Tensor> components, SourceLocation at) {
  const RecorderScope suspended(nullptr);
  std::vector<Tensor> here;
  for (const Tensor& component : components) here.push_back(component.to_host());
  Tensor sum = sum_components(here);
  if (linked_workers_)
    sum = linked_workers_->all_reduce_sum(
        op == ReduceOp::sum ? "Strategy::reduce with sum of" : "Strategy::reduce with mean of", sum,
        at);
  return op == ReduceOp::sum ? sum : div(sum, static_cast<double>(num_replicas_in_sync()));
}

Tensor LocalReplicas::broadcast_initial_value(std::string_view name, Tensor value,
                                              SourceLocation at) {
  if (!linked_workers_) return value;
  return linked_workers_->broadcast("initial value of '" + std::string(name) + "'", value, at);
}

std::string LocalReplicas::describe() const {
  std::string text = options_.name + " on";
  for (const Device& device : options_.devices) text += " " + device.to_string();
  if (streams_) text += ", collectives: " + streams_->describe();
  return text + (baton_ ? ", one replica at a time" : "");
}

void LocalReplicas::count_input_time(Clock::duration waited) {
  input_time_.fetch_add(waited.count(), std::memory_order_relaxed);
  if (first_start_ == 0) first_start_ = (Clock::now() - waited).time_since_epoch().count();
}

telemetry::StepReport LocalReplicas::step_report() const {
  using Seconds = std::chrono::duration<double>;
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration_cast<Seconds>(time).count();
  };
  telemetry::StepReport report;
  report.steps = steps_;
  report.input = seconds(Clock::duration(input_time_));
  for (const auto& replica : replicas_) {
    using telemetry::Phase;
    report.compute += seconds(replica->times().of(Phase::compute)) / num_local();
    report.update += seconds(replica->times().of(Phase::update)) / num_local();
  }
  // The rest of a run is waiting for others: in collectives, for the thread to start, at the end.
  report.communication = seconds(Clock::duration(run_time_)) - report.compute - report.update;
  report.total = seconds(Clock::duration(last_end_ - first_start_));
  return report;
}

}  // namespace lockstep
