// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/distribute/strategy.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "device/pool.h"
#include "distribute/local_replicas.h"

namespace lockstep {
namespace {

std::vector<Device> default_devices() {
  std::vector<Device> gpus = list_devices(DeviceKind::cuda);
  return gpus.empty() ? list_devices(DeviceKind::cpu) : gpus;
}

std::vector<Device> devices_of(const MirroredOptions& options, SourceLocation at) {
  if (options.devices.empty()) return default_devices();
  std::vector<Device> devices;
  for (const std::string& name : options.devices) {
    if (name == "GPU:*" || name == "gpu:*") {
      const std::vector<Device> gpus = list_devices(DeviceKind::cuda);
      if (gpus.empty() && !options.fallback_to_cpu)
        throw Unavailable(
            "[MirroredStrategy] \"GPU:*\": no GPU is present, or this build of lockstep has no "
            "CUDA "
            "support; set fallback_to_cpu to use the CPUs instead",
            at);
      for (const Device& device : gpus.empty() ? list_devices(DeviceKind::cpu) : gpus)
        devices.push_back(device);
      continue;
    }
    devices.push_back(parse_device(name, at));
  }
  for (std::size_t i = 0; i < devices.size(); ++i)
    require(std::count(devices.begin(), devices.end(), devices[i]) == 1, at, "MirroredStrategy",
            "device ", devices[i].to_string(),
            " is named twice; each replica needs a device of its own");
  return devices;
}

std::shared_ptr<StrategyInterface> mirrored(const MirroredOptions& options, SourceLocation at) {
  require(options.communication.timeout.count() > 0, at, "MirroredStrategy",
          "expected a communication.timeout above zero, got ",
          options.communication.timeout.count(), " ms");
  return std::make_shared<LocalReplicas>(
      LocalReplicas::Options{.name = "MirroredStrategy",
                             .devices = devices_of(options, at),
                             .replica_threads = options.replica_threads,
                             .communication = options.communication,
                             .seed = options.seed});
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.emplace_back(text.substr(0, end));
  parts.emplace_back(text);
  return parts;
}

// What follows "mirrored:": "4" stands for so many logical CPUs, "CPU:0,CPU:2" for these devices.
std::vector<std::string> devices_named(std::string_view text, SourceLocation at) {
  if (text.find_first_not_of("+-0123456789") != std::string_view::npos) return split(text, ',');
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require(
      error == std::errc() && end == text.data() + text.size() && count > 0 && count <= kMaxDevices,
      at, "make_strategy", "expected a count of 1 or more (up to ", kMaxDevices,
      "), or devices, after \"mirrored:\", got \"", text, '"');
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back("CPU:" + std::to_string(i));
  return devices;
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

Strategy make_strategy(std::string_view text, SourceLocation at) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool plain = colon == std::string_view::npos;
  const std::string_view rest = plain ? "" : text.substr(colon + 1);
  if (kind == "one_device")
    return OneDeviceStrategy({.device = plain ? "CPU:0" : std::string(rest)}, at);
  if (kind == "mirrored") {
    MirroredOptions options;
    if (!plain) options.devices = devices_named(rest, at);
    return MirroredStrategy(options, at);
  }
  if (kind == "multi_worker" || kind == "tpu")
    throw Unavailable(message("make_strategy", "\"", text,
                              "\": this build of lockstep offers \"one_device\" and "
                              "\"mirrored\""),
                      at);
  throw InvalidArgument(message("make_strategy",
                                "expected \"one_device[:DEVICE]\", \"mirrored[:COUNT]\" or "
                                "\"mirrored:DEVICE,DEVICE...\", got \"",
                                text, "\""),
                        at);
}

}  // namespace lockstep
