// SPDX-License-Identifier: Apache-2.0
#include "device/fake/guarded_memory.h"

#include <lockstep/base/check.h>

#include <sys/mman.h>

namespace lockstep::fake {
namespace {

constexpr std::size_t kCapacity = std::size_t{256} << 20;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;

std::size_t rounded(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

GuardedMemory::GuardedMemory(bool guarded) : guarded_(guarded) {
  void* const range = mmap(nullptr, kCapacity, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ensure(range != MAP_FAILED, "GuardedMemory", "the system refused ", kCapacity, " bytes");
  base_ = static_cast<std::byte*>(range);
}

GuardedMemory::~GuardedMemory() { munmap(base_, kCapacity); }

void* GuardedMemory::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes, kAlignment);
  if (size < bytes || size > kCapacity - used_) return nullptr;
  void* const data = base_ + used_;
  used_ += size;
  return data;
}

bool GuardedMemory::contains(const void* data) const {
  const auto* const byte = static_cast<const std::byte*>(data);
  return byte >= base_ && byte < base_ + kCapacity;
}

void GuardedMemory::open(bool accessible) {
  if (!guarded_ || used_ == 0) return;
  const int failed =
      mprotect(base_, rounded(used_, kPage), accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  ensure(failed == 0, "GuardedMemory", "mprotect failed");
}

}  // namespace lockstep::fake
