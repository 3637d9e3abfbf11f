// SPDX-License-Identifier: Apache-2.0
#include "distribute/baton.h"

#include <algorithm>

namespace lockstep {

void Baton::reset() {
  const std::lock_guard lock(mutex_);
  holder_ = 0;
  std::fill(done_.begin(), done_.end(), false);
}

void Baton::acquire(int replica) {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return holder_ == replica; });
}

void Baton::leave(int replica) noexcept {
  const std::lock_guard lock(mutex_);
  done_[static_cast<std::size_t>(replica)] = true;
  pass_on(replica);
}

bool Baton::hand_over(int replica) noexcept {
  std::unique_lock lock(mutex_);
  pass_on(replica);
  if (holder_ == replica) return false;
  turn_.wait(lock, [&] { return holder_ == replica; });
  return true;
}

bool Baton::pause(int replica, Backoff& backoff) noexcept {
  return hand_over(replica) || backoff.pause();
}

void Baton::pass_on(int replica) {
  const int size = static_cast<int>(done_.size());
  for (int step = 1; step <= size; ++step) {
    const int next = (replica + step) % size;
    if (done_[static_cast<std::size_t>(next)]) continue;
    holder_ = next;
    break;
  }
  turn_.notify_all();
}

}  // namespace lockstep
