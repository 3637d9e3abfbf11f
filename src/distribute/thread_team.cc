// SPDX-License-Identifier: Apache-2.0
#include "distribute/thread_team.h"

#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>
#include <pthread.h>

#include <string>
#include <system_error>

namespace lockstep {
namespace {

// Returns once `atomic` no longer holds `old`: spins a while, then sleeps in the kernel.
template <class T>
T await_change(const std::atomic<T>& atomic, T old, bool spin) {
  constexpr int kSpins = 20000;  // a few hundred microseconds: the gap between two steps
  for (int i = 0; spin && i < kSpins; ++i) {
    const T now = atomic.load(std::memory_order_acquire);
    if (now != old) return now;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  atomic.wait(old, std::memory_order_acquire);
  return atomic.load(std::memory_order_acquire);
}

// How many forks lie between the first process of the program and this one.
std::atomic<int> forks{0};

int count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : forks_(count_forks()), spin_(size <= available_cores()) {
  try {
    for (int member = 1; member < size; ++member)
      threads_.emplace_back([this, member] { serve(member); });
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size();
    stop();
    throw ResourceExhausted(message("Strategy", "could start ", started, " of ", size - 1,
                                    " threads for the replicas: ", error.what(),
                                    "; use fewer replicas or raise the limit on threads"),
                            SourceLocation{});
  }
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::stop() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) lost_by_fork() ? thread.detach() : thread.join();
  threads_.clear();
}

bool ThreadTeam::lost_by_fork() const { return !threads_.empty() && count_forks() != forks_; }

void ThreadTeam::run(const std::function<void(int)>& job) {
  if (!threads_.empty()) {
    running_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    job_.store(&job, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  job(0);
  wait_for_others();
}

void ThreadTeam::wait_for_others() {
  for (int running = running_.load(std::memory_order_acquire); running != 0;)
    running = await_change(running_, running, spin_);
}

void ThreadTeam::serve(int member) {
  set_thread_name("replica " + std::to_string(member));
  std::uint32_t seen = 0;
  while (true) {
    seen = await_change(generation_, seen, spin_);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*job_.load(std::memory_order_relaxed))(member);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_one();
  }
}

}  // namespace lockstep
