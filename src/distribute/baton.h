// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/in_process.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace lockstep {

// Lets the replicas of a process run one at a time, in replica order: replica 0 starts with the
// baton; who waits for the others or is done hands it to the next replica that is not done.
class Baton final : public WaitPolicy {
 public:
  explicit Baton(int size) : done_(static_cast<std::size_t>(size), false) {}

  // A new run: replica 0 holds the baton. While no replica is inside.
  void reset();
  // Blocks until it is this replica's turn.
  void acquire(int replica);
  // The replica is done; the next one's turn.
  void leave(int replica) noexcept;
  // A meeting point: the others run until the baton comes back. False if nobody else is left.
  bool hand_over(int replica) noexcept;
  // The replica waits for others, which run in the meantime.
  bool pause(int replica, Backoff& backoff) noexcept override;

 private:
  void pass_on(int replica);  // with mutex_ held

  std::mutex mutex_;
  std::condition_variable turn_;
  int holder_ = 0;
  std::vector<bool> done_;
};

}  // namespace lockstep
