// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

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

// The first touch of small pages is dear, so huge ones are asked for; the system may refuse.
void* huge_pages(std::size_t bytes, std::size_t alignment) {
  void* data = std::aligned_alloc(alignment, bytes);
  if (data) madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

// Huge pages that smaller blocks are cut from, one behind the other: cut from pages of 4 KiB, the
// blocks of each process meet in the caches differently, and its steps take up to a tenth longer.
// A slab is freed with the last of its blocks.
class Slab {
 public:
  static constexpr std::size_t kBytes = 8 * kHugePage;  // also its alignment

  static Slab* create() {
    void* memory = huge_pages(kBytes, kBytes);
    return memory ? new (memory) Slab : nullptr;
  }
  static Slab* of(void* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(kBytes - 1));
  }
  bool has_room(std::size_t bytes) const { return kBytes - used_ >= bytes; }
  void* cut(std::size_t bytes) {
    void* const block = reinterpret_cast<std::byte*>(this) + used_;
    used_ += bytes;
    ++blocks_;
    return block;
  }
  // Whether this was the last one.
  bool put_back() { return --blocks_ == 0; }

 private:
  std::size_t used_ = kAlignment;  // this object stands before the blocks
  std::size_t blocks_ = 0;
};

class HostMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes >= kHugePage) {
      const std::size_t whole_pages = (bytes + kHugePage - 1) & ~(kHugePage - 1);
      return huge_pages(whole_pages, kHugePage);
    }
#if defined(__SANITIZE_ADDRESS__)
    return std::aligned_alloc(kAlignment, bytes);  // the sanitizer knows where each block ends
#else
    if (!slab_ || !slab_->has_room(bytes)) slab_ = Slab::create();
    return slab_ ? slab_->cut(bytes) : nullptr;
#endif
  }
  void free(void* data, std::size_t bytes) noexcept override {
    ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#if !defined(__SANITIZE_ADDRESS__)
    if (bytes < kHugePage) {
      Slab* const slab = Slab::of(data);
      if (!slab->put_back()) return;
      if (slab == slab_) slab_ = nullptr;
      data = slab;
    }
#endif
    std::free(data);
  }
  void handed_out([[maybe_unused]] void* data,
                  [[maybe_unused]] std::size_t bytes) noexcept override {
    ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  }
  void returned([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept override {
    ASAN_POISON_MEMORY_REGION(data, bytes);
  }

 private:
  Slab* slab_ = nullptr;
};

}  // namespace

std::unique_ptr<MemorySource> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace lockstep
