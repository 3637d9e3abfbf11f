// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <string_view>

namespace lockstep {

// Cores this process may run on (the affinity mask, not the machine), at least 1.
LOCKSTEP_EXPORT int available_cores();

// Name of the calling thread as debuggers and profilers show it; cut to 15 characters.
LOCKSTEP_EXPORT void set_thread_name(std::string_view name);

// Waiting for another thread: spin briefly, then yield. A waiter calls pause() in its loop and
// checks its deadline when pause() returns true (about every hundred microseconds, so that the
// clock is rarely read). With `spin` false (more waiters than cores) it yields at once and soon
// sleeps.
class LOCKSTEP_EXPORT Backoff {
 public:
  explicit Backoff(bool spin = true) : spin_(spin) {}
  bool pause();

 private:
  bool spin_;
  unsigned rounds_ = 0;
};

}  // namespace lockstep
