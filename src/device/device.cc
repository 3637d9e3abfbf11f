// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device/device.h>

#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "device/cuda/status.h"
#include "device/fake/devices.h"
#include "device/pool.h"
#include "device/xla/trace.h"

namespace lockstep {
namespace {

thread_local Device innermost;

Device gpu(std::string_view name, int index, SourceLocation at) {
  const cuda::Status& status = cuda::status();
  if (index < status.devices) return {DeviceKind::cuda, index};
  throw Unavailable(message("parse_device", "\"", name, "\": ",
                            status.devices == 0 ? "there is no GPU: " : "there is no such GPU: ",
                            status.text, "; or use \"CPU:i\" devices instead"),
                    at);
}

}  // namespace

std::string Device::to_string() const {
  constexpr const char* names[] = {"CPU", "GPU", "TPU", "FAKE"};
  return names[static_cast<std::size_t>(kind)] + (":" + std::to_string(index));
}

Device parse_device(std::string_view name, SourceLocation at) {
  const std::size_t colon = name.find(':');
  std::string kind(name.substr(0, colon));
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  int index = 0;
  bool number = true;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    number = error == std::errc() && end == digits.data() + digits.size() && index >= 0;
  }
  if (kind == "FAKE" && fake::device_count() > 0) {
    require(number && index < fake::device_count(), at, "parse_device", "\"", name,
            "\": there are ", fake::device_count(), " fake devices");
    return {DeviceKind::fake, index};
  }
  require(number && (kind == "CPU" || kind == "GPU" || kind == "TPU"), at, "parse_device",
          "expected \"CPU:i\", \"GPU:i\" or \"TPU:i\" with i >= 0, got \"", name, '"');
  if (kind == "CPU") {
    require(index < kMaxDevices, at, "parse_device", "expected \"CPU:i\" with i below ",
            kMaxDevices, ", got \"", name, '"');
    return {DeviceKind::cpu, index};
  }
  if (kind == "GPU") return gpu(name, index, at);
  throw Unavailable(message("parse_device", "\"", name,
                            "\": this build of lockstep has no TPU support; use \"CPU:i\" "
                            "devices instead"),
                    at);
}

std::vector<Device> list_devices(DeviceKind kind) {
  std::vector<Device> devices;
  if (kind == DeviceKind::cpu)
    for (int i = 0; i < available_cores(); ++i) devices.push_back({kind, i});
  if (kind == DeviceKind::cuda)
    for (int i = 0; i < cuda::status().devices; ++i) devices.push_back({kind, i});
  if (kind == DeviceKind::fake)
    for (int i = 0; i < fake::device_count(); ++i) devices.push_back({kind, i});
  if (kind == DeviceKind::xla)  // of the plugins loaded so far
    for (int i = 0; i < xla::num_known_devices(); ++i) devices.push_back({kind, i});
  return devices;
}

Device current_device() noexcept { return innermost; }
Device current_host_device() noexcept { return innermost.is_host() ? innermost : Device{}; }
DeviceScope::DeviceScope(Device device) noexcept : previous_(std::exchange(innermost, device)) {}
DeviceScope::~DeviceScope() { innermost = previous_; }

MemoryStats memory_stats(Device device) { return pool_of(device).stats(); }
void set_memory_limit(Device device, std::int64_t bytes) { pool_of(device).set_limit(bytes); }

}  // namespace lockstep
