// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class DeviceKind : std::uint8_t {
  cpu,
  cuda,
  xla,
  fake  // in tests: accelerators made of host memory, whose streams run late and in odd orders
};

// The name of a place where tensors live and ops run: a value. "CPU:i" are logical CPUs: any number
// of them may be used on any machine; they share the host's memory but have a buffer pool each.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  std::string to_string() const;  // "CPU:0", "GPU:1", "TPU:0", "FAKE:0"
  bool is_host() const { return kind == DeviceKind::cpu; }
  friend bool operator==(const Device&, const Device&) = default;
};

// Reads "CPU:0", "GPU:1", "TPU:2", in any case; a kind alone means index 0. Throws InvalidArgument
// for anything else, and Unavailable (saying how to enable it) for a kind this build or machine
// lacks.
LOCKSTEP_EXPORT Device parse_device(std::string_view name,
                                    SourceLocation at = SourceLocation::current());

// Devices of a kind that are present, in index order: for cpu one per available core. Never throws.
LOCKSTEP_EXPORT std::vector<Device> list_devices(DeviceKind kind);

// The device on which the calling thread's factories place tensors: the innermost DeviceScope's,
// else CPU:0.
LOCKSTEP_EXPORT Device current_device() noexcept;
// The same if it is a CPU, else CPU:0: where the host side of an accelerator's work is done.
LOCKSTEP_EXPORT Device current_host_device() noexcept;

// Sets current_device() for the calling thread while it lives.
class [[nodiscard]] LOCKSTEP_EXPORT DeviceScope {
 public:
  explicit DeviceScope(Device device) noexcept;
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device previous_;
};

// Memory of a device's pool, in bytes. `in_use` is held by live buffers, `cached` is kept for
// reuse.
struct MemoryStats {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;  // highest in_use since the start
  std::int64_t cached = 0;
  std::int64_t limit = 0;               // 0: none
  std::int64_t system_allocations = 0;  // requests that went to the system
};

LOCKSTEP_EXPORT MemoryStats memory_stats(Device device);

// Bounds in_use of the device's pool; an allocation beyond it throws ResourceExhausted. 0 removes
// it.
LOCKSTEP_EXPORT void set_memory_limit(Device device, std::int64_t bytes);

}  // namespace lockstep
