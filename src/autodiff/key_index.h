// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

// Maps tensor keys (never 0) to dense indices 0, 1, ... in order of insertion: open addressing,
// because a tape looks up every input of every op.
class KeyIndex {
 public:
  static constexpr std::int32_t kAbsent = -1;

  std::int32_t find(std::uint64_t key) const {
    if (slots_.empty()) return kAbsent;
    for (std::size_t at = hash(key) & mask();; at = (at + 1) & mask()) {
      if (slots_[at].key == key) return slots_[at].index;
      if (slots_[at].key == 0) return kAbsent;
    }
  }
  // The index of the key, a new one when it was absent.
  std::int32_t insert(std::uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::size_t at = hash(key) & mask();
    for (; slots_[at].key != 0; at = (at + 1) & mask())
      if (slots_[at].key == key) return slots_[at].index;
    slots_[at] = {key, static_cast<std::int32_t>(size_++)};
    return slots_[at].index;
  }
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t index = kAbsent;
  };
  static std::size_t hash(std::uint64_t key) {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32);
  }
  std::size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key == 0) continue;
      std::size_t at = hash(slot.key) & mask();
      while (slots_[at].key != 0) at = (at + 1) & mask();
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
