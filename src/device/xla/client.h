// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/xla/plugin.h"

namespace lockstep::xla {

class Client;

// An array in the memory of a device. Immutable but for donation, which leaves it empty.
class DeviceArray {
 public:
  DeviceArray(const Client& client, int device, abi::Buffer* buffer)
      : client_(client), device_(device), buffer_(buffer) {}
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  const Client& client() const { return client_; }
  int device() const { return device_; }  // its place among the client's
  abi::Buffer* get() const { return buffer_; }
  // Copies the elements out, row-major, once they are computed. Throws what their computation threw.
  void to_host(void* to, std::size_t bytes, int rank) const;
  // An execution took its memory over.
  bool donated() const;

 private:
  const Client& client_;
  const int device_;
  abi::Buffer* const buffer_;
};
using DeviceArrayPtr = std::shared_ptr<DeviceArray>;

// A compiled program, loaded on devices 0 .. num_replicas - 1 of its client.
class Executable {
 public:
  // Throws InternalError when the compiler placed it elsewhere.
  Executable(const Client& client, abi::LoadedExecutable* executable,
             std::span<abi::Device* const> devices);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  int num_replicas() const { return num_replicas_; }
  // Bytes of arguments whose memory outputs take over, of one replica.
  std::int64_t alias_bytes() const { return alias_bytes_; }
  // Runs the program with arguments[replica] on all replicas and returns outputs[replica] when all
  // are done. Launches of one client follow each other, as the collectives of two might wait for
  // each other's threads.
  std::vector<std::vector<DeviceArrayPtr>> run(
      std::span<const std::vector<abi::Buffer*>> arguments) const;

 private:
  const Client& client_;
  abi::LoadedExecutable* const executable_;
  const int num_replicas_;
  std::size_t num_outputs_ = 0;
  std::int64_t alias_bytes_ = 0;
};

// A plugin's devices. Thread-safe; lives until the process ends.
class Client {
 public:
  // The client of the plugin at `path`, made by the first call. XLA's CPU plugin stands in with
  // kStandInDevices devices. Throws Unavailable when there are no devices.
  static const Client& of(const std::string& path);
  static constexpr int kStandInDevices = 8;

  const Plugin& plugin() const { return plugin_; }
  const std::string& platform() const { return platform_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  const std::string& device_kind(int device) const {
    return kinds_[static_cast<std::size_t>(device)];
  }

  // Copies row-major elements to a device; they may change after the call.
  DeviceArrayPtr upload(abi::ElementType type, const Shape& shape, const void* data,
                        int device) const;
  // Compiles StableHLO text, see also dump(). Throws InternalError with the compiler's message and
  // version.
  std::unique_ptr<Executable> compile(const std::string& text, int num_replicas) const;

 private:
  explicit Client(const Plugin& plugin);
  void list_devices();

  const Plugin& plugin_;
  abi::Client* client_ = nullptr;
  std::string platform_;
  std::vector<abi::Device*> devices_;
  std::vector<int> ids_;
  std::vector<std::string> kinds_;
  friend class Executable;
  mutable std::mutex launch_mutex_;
  mutable int launches_ = 0;
};

}  // namespace lockstep::xla
