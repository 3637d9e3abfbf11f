// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device/buffer.h>

#include <lockstep/base/check.h>

#include <memory>

#include "device/pool.h"

namespace lockstep {

void detail::retain(BufferBlock* block) noexcept {
  block->references.fetch_add(1, std::memory_order_relaxed);
}

void detail::release(BufferBlock* block) noexcept {
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (block->pool) {
    block->pool->free(block);
  } else {
    if (block->released) block->released();
    delete block;
  }
}

bool detail::sole_reference(const BufferBlock* block) noexcept {
  return block->references.load(std::memory_order_acquire) == 1;
}

Buffer Buffer::allocate(Device device, std::size_t bytes) {
  // What the host is to fill lies with the host; ops carry it to TPUs.
  if (device.kind == DeviceKind::xla) device = Device{};
  Buffer buffer;
  buffer.block_ = pool_of(device).allocate(bytes);
  buffer.data_ = static_cast<std::byte*>(buffer.block_->data);
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer Buffer::wrap(Device device, void* data, std::size_t bytes, std::function<void()> release) {
  auto block = std::make_unique<detail::BufferBlock>();
  block->device = device;
  block->data = data;
  block->capacity = bytes;
  block->released = std::move(release);
  Buffer buffer;
  buffer.block_ = block.release();
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.bytes_ = bytes;
  return buffer;
}

Device Buffer::device() const { return block_ ? block_->device : Device{}; }

Buffer Buffer::slice(std::size_t offset, std::size_t bytes) const {
  ensure(offset + bytes <= bytes_, "Buffer::slice", "range [", offset, ", ", offset + bytes,
         ") is outside ", bytes_, " bytes");
  Buffer part = *this;
  part.data_ += offset;
  part.bytes_ = bytes;
  return part;
}

}  // namespace lockstep
