// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/multi_worker.h>

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/cluster/cluster_view.h>
#include <lockstep/cluster/tf_config.h>
#include <lockstep/comm/grpc.h>
#include <lockstep/tensor/tensor.h>

#include <thread>
#include <utility>

#include "distribute/communicator_workers.h"
#include "distribute/devices.h"
#include "distribute/local_replicas.h"
#include "ops/isa.h"

namespace lockstep {
namespace {

constexpr const char* kName = "MultiWorkerMirroredStrategy";

ClusterView view_of(const MultiWorkerOptions& options, SourceLocation at) {
  if (options.cluster)
    return ClusterView(options.cluster->cluster_spec(), options.cluster->task(), at);
  const TFConfigClusterResolver resolver({}, at);
  return ClusterView(resolver.cluster_spec(), resolver.task(), at);
}

// What must not differ between workers, in words.
std::string agreement(const MultiWorkerOptions& options, std::size_t num_replicas) {
  return std::to_string(num_replicas) + " replicas each, bytes_per_pack " +
         std::to_string(options.communication.bytes_per_pack) + ", num_packs " +
         (options.communication.num_packs ? std::to_string(*options.communication.num_packs)
                                          : "unset") +
         ", heartbeat_timeout " + std::to_string(options.heartbeat_timeout.count()) + " ms";
}

std::string traits() {
  return std::string("kernels for ") + name_of(isa()) + ", " +
         std::to_string(std::thread::hardware_concurrency()) + " cores";
}

// Binds, finds the others and returns what connects this worker to them.
WorkerLink link_workers(const ClusterView& view, const MultiWorkerOptions& options,
                        std::size_t num_replicas) {
  if (view.num_workers() == 1) return {};
  GrpcOptions grpc{.rank = view.rank(),
                   .addresses = {},
                   .listen_address = options.listen_address,
                   .startup_timeout = options.startup_timeout,
                   .collective_timeout = options.communication.timeout,
                   .heartbeat_timeout = options.heartbeat_timeout,
                   .tls = options.tls,
                   .agreement = agreement(options, num_replicas),
                   .traits = traits()};
  for (const ClusterMember& worker : view.workers()) {
    grpc.addresses.push_back(worker.address);
    grpc.names.push_back(worker.task.to_string());
  }
  auto group = std::make_shared<GrpcGroup>(std::move(grpc));
  return {
      .owner = group, .communicator = &group->communicator(), .next_epoch = [group = group.get()] {
        group->returned();
        group->begin_epoch();
      }};
}

// The chief's seed, on every worker.
std::uint64_t agreed_seed(const WorkerLink& link, std::uint64_t own, SourceLocation at) {
  if (!link) return own;
  const Tensor seed({1}, {static_cast<std::int64_t>(own)});
  const Tensor agreed = CommunicatorWorkers(*link.communicator).broadcast("seed", seed, at);
  return static_cast<std::uint64_t>(agreed.data<std::int64_t>()[0]);
}

std::shared_ptr<StrategyInterface> multi_worker(const MultiWorkerOptions& options,
                                                SourceLocation at) {
  check_communication(options.communication, kName, at);
  require(options.startup_timeout.count() > 0 && options.heartbeat_timeout.count() > 0, at, kName,
          "expected a startup_timeout and a heartbeat_timeout above zero, got ",
          options.startup_timeout.count(), " ms and ", options.heartbeat_timeout.count(), " ms");
  const ClusterView view = view_of(options, at);
  std::vector<Device> devices = list_devices(DeviceKind::cuda);
  if (devices.empty()) devices = {parse_device("CPU:0", at)};
  if (!options.devices.empty())
    devices = devices_named(options.devices, /*fallback_to_cpu=*/false, kName, at);
  WorkerLink link = link_workers(view, options, devices.size());
  logging::info(message(kName, view.to_string(), "; ", devices.size(), " replicas here"));
  const std::uint64_t seed = agreed_seed(link, options.seed, at);
  return std::make_shared<LocalReplicas>(
      LocalReplicas::Options{.name = std::string(kName) + " " + view.to_string() + ",",
                             .devices = std::move(devices),
                             .replica_threads = options.replica_threads,
                             .communication = options.communication,
                             .seed = seed,
                             .link = std::move(link)});
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const MultiWorkerOptions& options,
                                                         SourceLocation at)
    : Strategy(multi_worker(options, at)) {}

}  // namespace lockstep
