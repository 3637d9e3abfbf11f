// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/buffer.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace lockstep {

class Pool;

struct detail::BufferBlock {
  std::atomic<int> references{1};
  Pool* pool = nullptr;  // null: wrapped memory
  Device device;
  void* data = nullptr;
  std::size_t capacity = 0;        // bytes of the size class
  std::function<void()> released;  // wrapped memory only
};

// Caching allocator of one device: blocks come back to free lists by size class and are handed out
// again, so a loop's second step asks nothing of the system. Thread-safe. Pools are never
// destroyed.
class Pool {
 public:
  using BlockPtr = detail::BufferBlock*;

  explicit Pool(Device device) : device_(device) {}
  BlockPtr allocate(std::size_t bytes);
  void free(BlockPtr block) noexcept;
  MemoryStats stats() const;
  void set_limit(std::int64_t bytes);

 private:
  BlockPtr allocate_from_system(std::size_t capacity);
  void release_cached();  // with mutex_ held
  [[noreturn]] void exhausted(std::size_t asked, const char* who) const;

  const Device device_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<BlockPtr>> free_;  // by capacity
  MemoryStats stats_;
};

// Logical devices of one kind there may be.
inline constexpr int kMaxDevices = 256;

// The pool of a device; made on first use, never destroyed, so it outlives every tensor.
Pool& pool_of(Device device);

}  // namespace lockstep
