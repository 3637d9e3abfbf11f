// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/buffer.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep {

class MemoryPool;

struct detail::BufferBlock {
  std::atomic<int> references{1};
  MemoryPool* pool = nullptr;  // null: wrapped memory
  Device device;
  void* data = nullptr;
  std::size_t capacity = 0;        // bytes of the size class
  std::function<void()> released;  // wrapped memory only
};

// Where a pool's memory comes from. Called with the pool locked.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Null when there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  // A block leaves the pool, and comes back to it.
  virtual void handed_out(void* data, std::size_t bytes) noexcept = 0;
  virtual void returned(void* data, std::size_t bytes) noexcept = 0;
};

// The system's memory, for the pool of one CPU: what its blocks are next to does not hang on what
// others allocate in the meantime.
std::unique_ptr<MemorySource> host_memory();

// Caching allocator of one device: blocks come back to free lists by size class and are handed out
// again, so a loop's second step asks nothing of the system. Thread-safe. Pools are never
// destroyed but a fake device's.
//
// A block of an accelerator comes back when its last handle dies, while work that uses it may still
// wait in the compute stream: whoever gets it next uses it behind that work, in the same stream.
// What another stream does with a block must be waited for by the compute stream before that.
class MemoryPool {
 public:
  using BlockPtr = detail::BufferBlock*;

  MemoryPool(Device device, MemorySource& source) : device_(device), source_(source) {}
  ~MemoryPool() { release_cached(); }
  BlockPtr allocate(std::size_t bytes);
  void free(BlockPtr block) noexcept;
  MemoryStats stats() const;
  void set_limit(std::int64_t bytes);

 private:
  BlockPtr allocate_from_system(std::size_t capacity);
  void release_cached();  // with mutex_ held, or at the end
  [[noreturn]] void exhausted(std::size_t asked, const char* who) const;

  const Device device_;
  MemorySource& source_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<BlockPtr>> free_;  // by capacity
  MemoryStats stats_;
};

// Logical devices of one kind there may be.
inline constexpr int kMaxDevices = 256;

// The pool of a device; made on first use, it outlives every tensor. Throws Unavailable for a device
// that is not there.
MemoryPool& pool_of(Device device);

}  // namespace lockstep
