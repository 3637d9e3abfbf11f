// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <lockstep/device/stream.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "device/pool.h"

namespace lockstep {

enum class StreamRole { compute, communication };

inline constexpr std::chrono::minutes kStreamTimeout{10};

// Device memory that a launch reads or writes.
struct MemoryRange {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

// What a launch is to the runtime: who checks orders needs to know what it touches.
struct LaunchInfo {
  std::string_view name;
  std::span<const MemoryRange> reads, writes;
};

// The runtime of one device that is not a CPU. Work is put into streams and done later; what is put
// into one stream is done in order. Thread-safe. Implementations: cuda/, fake/.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual MemoryPool& pool() = 0;
  virtual Stream stream(StreamRole role) = 0;

  // Puts a host function that works on this device's memory. Only a device whose memory the host
  // can address offers it; others are launched on by their own kernels.
  virtual void launch(const Stream& stream, const LaunchInfo& info,
                      std::function<void()> kernel) = 0;

  // `from` may be changed as soon as the call returns.
  virtual void copy_from_host(const Stream& stream, void* to, const void* from,
                              std::size_t bytes) = 0;
  // Returns when the bytes are there.
  virtual void copy_to_host(const Stream& stream, void* to, const void* from,
                            std::size_t bytes) = 0;
  // Between devices of this kind; both ranges stay valid until the stream has passed the copy.
  virtual void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(const Stream& stream, void* to, std::size_t bytes) = 0;

  // An event's point; see event.h. wait() is given null for an event that was never recorded.
  virtual std::shared_ptr<void> record(const Stream& stream) = 0;
  virtual void wait(const Stream& stream, const std::shared_ptr<void>& point) = 0;
  virtual void synchronize(const Stream& stream, Deadline deadline) = 0;
};

// The runtime of a device. Throws Unavailable for one that is not there, InternalError for a CPU.
Accelerator& accelerator_of(Device device);

// Copies bytes between any two devices behind what their compute streams hold so far; who puts work
// there afterwards finds them copied. Into host memory: returns when they are there.
void copy_bytes(Device to_device, void* to, Device from_device, const void* from,
                std::size_t bytes);
// Sets bytes of a device's memory to zero, in its compute stream.
void zero_bytes(Device device, void* to, std::size_t bytes);

}  // namespace lockstep
