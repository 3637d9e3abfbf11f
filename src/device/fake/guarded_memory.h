// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::fake {

// The memory of one fake device: host memory that may be touched only while an operation of the
// device runs. Host code that touches it at another time crashes, as it would with a GPU's.
class GuardedMemory {
 public:
  // Without `guarded` it may be touched at any time, for tools that do.
  explicit GuardedMemory(bool guarded);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* allocate(std::size_t bytes);  // null when the device is full
  bool contains(const void* data) const;
  void open(bool accessible);

 private:
  const bool guarded_;
  std::byte* base_;
  // Grows under the pool's lock while operations of other devices open and close what is in use.
  std::atomic<std::size_t> used_{0};
};

}  // namespace lockstep::fake
