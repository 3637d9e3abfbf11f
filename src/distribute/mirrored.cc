// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>

#include <memory>

#include "distribute/devices.h"
#include "distribute/local_replicas.h"

namespace lockstep {
namespace {

std::vector<Device> default_devices() {
  std::vector<Device> gpus = list_devices(DeviceKind::cuda);
  return gpus.empty() ? list_devices(DeviceKind::cpu) : gpus;
}

std::shared_ptr<StrategyInterface> mirrored(const MirroredOptions& options, SourceLocation at) {
  constexpr const char* kOp = "MirroredStrategy";
  check_communication(options.communication, kOp, at);
  return std::make_shared<LocalReplicas>(LocalReplicas::Options{
      .name = kOp,
      .devices = options.devices.empty()
                     ? default_devices()
                     : devices_named(options.devices, options.fallback_to_cpu, kOp, at),
      .replica_threads = options.replica_threads,
      .cross_device_ops = options.cross_device_ops,
      .communication = options.communication,
      .seed = options.seed});
}

}  // namespace

MirroredStrategy::MirroredStrategy(const MirroredOptions& options, SourceLocation at)
    : Strategy(mirrored(options, at)) {}

OneDeviceStrategy::OneDeviceStrategy(const OneDeviceOptions& options, SourceLocation at)
    : Strategy(std::make_shared<LocalReplicas>(
          LocalReplicas::Options{.name = "OneDeviceStrategy",
                                 .devices = {parse_device(options.device, at)},
                                 .replica_threads = {},
                                 .communication = {},
                                 .seed = options.seed})) {}

}  // namespace lockstep
