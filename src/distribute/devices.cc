// SPDX-License-Identifier: Apache-2.0
#include "distribute/devices.h"

#include <lockstep/base/check.h>

#include <algorithm>

#include "device/cuda/status.h"

namespace lockstep {
namespace {

std::vector<Device> all_gpus(bool fallback_to_cpu, const char* op, SourceLocation at) {
  std::vector<Device> gpus = list_devices(DeviceKind::cuda);
  if (!gpus.empty()) return gpus;
  if (fallback_to_cpu) return list_devices(DeviceKind::cpu);
  throw Unavailable(message(op, "\"GPU:*\": there is no GPU: ", cuda::status().text,
                            "; or set fallback_to_cpu to use the CPUs instead"),
                    at);
}

}  // namespace

std::vector<Device> devices_named(const std::vector<std::string>& names, bool fallback_to_cpu,
                                  const char* op, SourceLocation at) {
  std::vector<Device> devices;
  for (const std::string& name : names) {
    if (name != "GPU:*" && name != "gpu:*") {
      devices.push_back(parse_device(name, at));
      continue;
    }
    const std::vector<Device> gpus = all_gpus(fallback_to_cpu, op, at);
    devices.insert(devices.end(), gpus.begin(), gpus.end());
  }
  for (const Device& device : devices)
    require(std::count(devices.begin(), devices.end(), device) == 1, at, op, "device ",
            device.to_string(), " is named twice; each replica needs a device of its own");
  for (const Device& device : devices)
    require(device.kind == devices[0].kind, at, op, "devices ", devices[0].to_string(), " and ",
            device.to_string(), " are of two kinds; use devices of one kind");
  return devices;
}

void check_communication(const CommunicationOptions& options, const char* op, SourceLocation at) {
  require(options.timeout.count() > 0, at, op, "expected a communication.timeout above zero, got ",
          options.timeout.count(), " ms");
}

}  // namespace lockstep
