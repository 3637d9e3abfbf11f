// SPDX-License-Identifier: Apache-2.0
#include "device/pool.h"

#include <lockstep/base/check.h>

#include <array>
#include <bit>
#include <memory>

#include "device/accelerator.h"

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMost = std::size_t{1} << 57;  // what a process can address at most

// Size classes: eight per power of two, so that at most an eighth of a block is unused.
std::size_t size_class(std::size_t bytes) {
  if (bytes <= 512)
    return bytes <= kAlignment ? kAlignment : (bytes + kAlignment - 1) & ~(kAlignment - 1);
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) & ~(step - 1);
}

}  // namespace

MemoryPool::BlockPtr MemoryPool::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kMost) exhausted(bytes, "the system");
  const std::size_t capacity = size_class(bytes);
  if (stats_.limit > 0 && stats_.in_use + static_cast<std::int64_t>(capacity) > stats_.limit)
    exhausted(bytes, "the pool's limit");
  BlockPtr block = nullptr;
  if (const auto found = free_.find(capacity); found != free_.end() && !found->second.empty()) {
    block = found->second.back();
    found->second.pop_back();
    stats_.cached -= static_cast<std::int64_t>(capacity);
    block->references.store(1, std::memory_order_relaxed);
  } else {
    block = allocate_from_system(capacity);
  }
  source_.handed_out(block->data, capacity);
  stats_.in_use += static_cast<std::int64_t>(capacity);
  if (stats_.in_use > stats_.peak) stats_.peak = stats_.in_use;
  return block;
}

MemoryPool::BlockPtr MemoryPool::allocate_from_system(std::size_t capacity) {
  void* data = source_.allocate(capacity);
  if (!data) {
    release_cached();
    data = source_.allocate(capacity);
  }
  if (!data) exhausted(capacity, "the system");
  ++stats_.system_allocations;
  auto block = std::make_unique<detail::BufferBlock>();
  block->pool = this;
  block->device = device_;
  block->data = data;
  block->capacity = capacity;
  return block.release();
}

void MemoryPool::free(BlockPtr block) noexcept {
  const std::lock_guard lock(mutex_);
  source_.returned(block->data, block->capacity);
  stats_.in_use -= static_cast<std::int64_t>(block->capacity);
  stats_.cached += static_cast<std::int64_t>(block->capacity);
  free_[block->capacity].push_back(block);
}

void MemoryPool::release_cached() {
  for (auto& [capacity, blocks] : free_) {
    for (const BlockPtr block : blocks) {
      source_.free(block->data, capacity);
      delete block;
    }
    blocks.clear();
  }
  stats_.cached = 0;
}

MemoryStats MemoryPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryPool::set_limit(std::int64_t bytes) {
  require(bytes >= 0, SourceLocation{}, "set_memory_limit", "expected a limit >= 0, got ", bytes);
  const std::lock_guard lock(mutex_);
  stats_.limit = bytes;
}

void MemoryPool::exhausted(std::size_t asked, const char* who) const {
  throw ResourceExhausted(
      message("Buffer::allocate", who, " refused memory on ", device_.to_string(), ": asked ",
              asked, " bytes, in use ", stats_.in_use, ", peak ", stats_.peak, ", limit ",
              stats_.limit ? std::to_string(stats_.limit) : "none",
              "; use a smaller batch or raise the limit"),
      SourceLocation{});
}

MemoryPool& pool_of(Device device) {
  static auto* const pools = new std::array<std::atomic<MemoryPool*>, kMaxDevices>{};
  static auto* const creation = new std::mutex;
  if (!device.is_host()) return accelerator_of(device).pool();
  require(device.index >= 0 && device.index < kMaxDevices, SourceLocation{}, "Device",
          "device index must be in [0, ", kMaxDevices, "), got ", device.index);
  std::atomic<MemoryPool*>& slot = (*pools)[static_cast<std::size_t>(device.index)];
  if (MemoryPool* pool = slot.load(std::memory_order_acquire)) return *pool;
  const std::lock_guard lock(*creation);
  if (!slot.load(std::memory_order_relaxed))
    slot.store(new MemoryPool(device, *host_memory().release()), std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

}  // namespace lockstep
