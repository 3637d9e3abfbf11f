// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/thread.h>

#include <atomic>

namespace lockstep {

// A mutex for sections of some tens of nanoseconds, which ranks enter at the same moment: a sleep
// and a wake-up would cost more than a collective. With `spin` false it yields instead.
class SpinLock {
 public:
  explicit SpinLock(bool spin) : spin_(spin) {}

  void lock() {
    if (!held_.exchange(true, std::memory_order_acquire)) return;
    Backoff backoff(spin_);
    do {
      while (held_.load(std::memory_order_relaxed)) backoff.pause();
    } while (held_.exchange(true, std::memory_order_acquire));
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  const bool spin_;
  alignas(64) std::atomic<bool> held_{false};
};

}  // namespace lockstep
