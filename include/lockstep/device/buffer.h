// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/device/device.h>

#include <cstddef>
#include <functional>
#include <utility>

namespace lockstep {

namespace detail {
struct BufferBlock;  // allocation, owner and reference count; defined in src/device
LOCKSTEP_EXPORT void retain(BufferBlock* block) noexcept;
LOCKSTEP_EXPORT void release(BufferBlock* block) noexcept;
LOCKSTEP_EXPORT bool sole_reference(const BufferBlock* block) noexcept;
}  // namespace detail

// A shared range of device memory: a cheap handle. Memory comes from the device's caching pool and
// goes back to it with the last handle, from whichever thread; it is aligned to 64 bytes and not
// cleared. Handles may be used from several threads at once; the bytes need the usual care.
class LOCKSTEP_EXPORT Buffer {
 public:
  Buffer() = default;
  // Throws ResourceExhausted (asked, in use, peak, limit) when the pool's limit or the system
  // refuses.
  static Buffer allocate(Device device, std::size_t bytes);
  // Memory owned by somebody else; `release` runs with the last handle.
  static Buffer wrap(Device device, void* data, std::size_t bytes, std::function<void()> release);

  Buffer(const Buffer& other) noexcept
      : block_(other.block_), data_(other.data_), bytes_(other.bytes_) {
    if (block_) detail::retain(block_);
  }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (block_) detail::release(block_);
  }

  explicit operator bool() const { return block_ != nullptr; }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const;

  // A handle to part of this range; it keeps the whole allocation alive.
  Buffer slice(std::size_t offset, std::size_t bytes) const;
  // No other handle, slices included, refers to the allocation: its bytes may be overwritten.
  bool unique() const { return block_ && detail::sole_reference(block_); }
  // Both are handles to the same allocation.
  bool shares_allocation(const Buffer& other) const { return block_ == other.block_; }

 private:
  detail::BufferBlock* block_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep
