// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>

#include "device/pool.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) (static_cast<void>(data), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) (static_cast<void>(data), static_cast<void>(bytes))
#endif

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class HostMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
    const std::size_t whole_pages = (bytes + kHugePage - 1) & ~(kHugePage - 1);
    void* data = std::aligned_alloc(kHugePage, whole_pages);
    if (data)
      madvise(data, whole_pages, MADV_HUGEPAGE);  // first touch is dear; advice may be refused
    return data;
  }
  void free(void* data, [[maybe_unused]] std::size_t bytes) noexcept override {
    ASAN_UNPOISON_MEMORY_REGION(data, bytes);
    std::free(data);
  }
  void handed_out([[maybe_unused]] void* data,
                  [[maybe_unused]] std::size_t bytes) noexcept override {
    ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  }
  void returned([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept override {
    ASAN_POISON_MEMORY_REGION(data, bytes);
  }
};

}  // namespace

MemorySource& host_memory() {
  static auto* const memory = new HostMemory;
  return *memory;
}

}  // namespace lockstep
