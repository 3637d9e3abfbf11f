// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>

namespace launch {

// A process that does one thing: when the process that made it is gone, however it went, it kills
// the process groups in its list. It gets no signals from the terminal.
class Guardian {
 public:
  // Made before anything is opened that the guardian should not hold open.
  explicit Guardian(std::size_t count);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // A process group that must not outlive this process; 0 for none. In memory that all processes
  // forked from here on share, so that a child can enter itself.
  std::atomic<pid_t>& group(std::size_t index) { return groups_[index]; }

 private:
  [[noreturn]] void guard(int lifeline);

  std::size_t count_;
  std::atomic<pid_t>* groups_;
  int lifeline_ = -1;
  pid_t pid_ = -1;
};

}  // namespace launch
