// SPDX-License-Identifier: Apache-2.0
#include "distribute/traced_replicas.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
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
constexpr std::chrono::minutes kTurn{10};

}  // namespace

TracedReplicas::TracedReplicas(const xla::Client& client, int replicas, std::uint64_t seed)
    : client_(client),
      scope_random_{.seed = seed, .stream = kScopeStream},
      programs_(client, replicas) {
  for (int i = 0; i < replicas; ++i) {
    devices_.push_back(xla::device_at(client, i));
    replicas_.push_back(std::make_unique<TracedReplica>(i, replicas, seed));
  }
}

void TracedReplicas::run(const std::function<void(int)>& replica_fn,
                         const std::optional<BatchRows>& rows) {
  const std::unique_lock turn(run_mutex_, kTurn);
  if (!turn.owns_lock())
    throw DeadlineExceeded(
        message("Strategy::run", "waited ", kTurn.count(),
                " minutes for another run of this strategy to end; does its step function wait for "
                "this thread?"),
        SourceLocation{});
  const Clock::time_point start = Clock::now();
  if (steps_.fetch_add(1, std::memory_order_relaxed) == 0 && first_start_ == 0)
    first_start_ = start.time_since_epoch().count();
  struct Running {
    TracedReplicas& self;
    Clock::time_point start;
    ~Running() {
      self.running_.store(false, std::memory_order_release);
      const Clock::time_point end = Clock::now();
      self.run_time_.fetch_add((end - start).count(), std::memory_order_relaxed);
      self.last_end_ = end.time_since_epoch().count();
    }
  } running{*this, start};
  running_.store(true, std::memory_order_release);
  step(replica_fn, rows ? &*rows : nullptr);
}

void TracedReplicas::step(const std::function<void(int)>& replica_fn, const BatchRows* rows) {
  const Clock::time_point start = Clock::now();
  Traces traces;
  for (int i = 0; i < num_replicas_in_sync(); ++i) trace(i, replica_fn, rows, traces);
  trace_time_.fetch_add((Clock::now() - start).count(), std::memory_order_relaxed);
  try {
    programs_.execute(traces);
  } catch (...) {
    fail(std::nullopt, traces);
  }
}

void TracedReplicas::trace(int index, const std::function<void(int)>& replica_fn,
                           const BatchRows* rows, Traces& traces) {
  TracedReplica& replica = *replicas_[static_cast<std::size_t>(index)];
  const Device device = devices_[static_cast<std::size_t>(index)];
  traces.push_back(std::make_unique<xla::Trace>(device.index));
  const RandomState random_before = replica.random_state();
  try {
    const ContextScope context(shared_from_this(), replica);
    const DeviceScope here(device);
    const RandomScope random(replica.random_state());
    const RecorderScope no_recorder(nullptr);
    const Placement no_placement({}, DType::f32, 0);
    const telemetry::PhaseTimesScope no_times(nullptr);
    const xla::TraceScope tracing(traces.back().get());
    replica.begin_step(rows);
    replica_fn(index);
    replica.end_step();
  } catch (...) {
    replica.end_step();
    replica.random_state() = random_before;
    fail(index, traces);
  }
}

// Throws the current exception on, with all variables as they were before the step.
void TracedReplicas::fail(std::optional<int> replica, Traces& traces) {
  for (const auto& trace : traces) trace->abandon("the step that was to compute it failed");
  try {
    throw;
  } catch (const Error& error) {
    ErrorContext context = error.context();
    if (!context.replica) context.replica = replica;
    if (!context.step) context.step = steps_;
    error.rethrow_with(std::move(context));
  } catch (const std::exception& error) {
    if (replica) logging::error("replica " + std::to_string(*replica) + " threw: " + error.what());
    throw;
  } catch (...) {
    if (replica)
      logging::error("replica " + std::to_string(*replica) +
                     " threw something that is no std::exception");
    throw;
  }
}

Tensor TracedReplicas::reduce(ReduceOp op, std::span<const Tensor> components, SourceLocation) {
  const RecorderScope suspended(nullptr);
  std::vector<Tensor> on_host;
  on_host.reserve(components.size());
  for (const Tensor& component : components)
    on_host.push_back(component.device().is_host() ? component : copy_to(component, Device{}));
  const Tensor sum = sum_components(on_host);
  return op == ReduceOp::sum ? sum : div(sum, static_cast<double>(components.size()));
}

std::string TracedReplicas::describe() const {
  std::string text = "TPUStrategy on";
  for (const Device& device : devices_) text += " " + device.to_string();
  return text + " (" + client_.device_kind(0) + ", " + client_.plugin().describe() + ")";
}

void TracedReplicas::count_input_time(Clock::duration waited) {
  input_time_.fetch_add(waited.count(), std::memory_order_relaxed);
  if (first_start_ == 0) first_start_ = (Clock::now() - waited).time_since_epoch().count();
}

// Tracing counts as communication with the devices: it is what their computing does not hide.
telemetry::StepReport TracedReplicas::step_report() const {
  const auto seconds = [](Clock::rep time) {
    return std::chrono::duration_cast<std::chrono::duration<double>>(Clock::duration(time)).count();
  };
  telemetry::StepReport report;
  report.steps = steps_;
  report.input = seconds(input_time_);
  report.communication = seconds(trace_time_);
  report.compute = seconds(run_time_) - report.communication;
  report.total = seconds(last_end_ - first_start_);
  return report;
}

}  // namespace lockstep
