// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/thread.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace lockstep {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void set_thread_name(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

bool Backoff::pause() {
  constexpr unsigned kSpins = 4000, kYields = 64;
  ++rounds_;
  const unsigned spins = spin_ ? kSpins : 0;
  if (rounds_ <= spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return rounds_ % 1024 == 0;
  }
  if (rounds_ <= spins + kYields) {
    std::this_thread::yield();
    return true;
  }
  const unsigned sleeps = rounds_ - spins - kYields;
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(20u * sleeps, 200u)));
  return true;
}

}  // namespace lockstep
