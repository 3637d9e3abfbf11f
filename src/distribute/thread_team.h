// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace lockstep {

// Threads that run a function together with their caller, again and again: member 0 is whoever
// calls run, members 1 .. size - 1 are threads that live as long as the team. One run at a time.
class ThreadTeam {
 public:
  // Throws ResourceExhausted when the system gives no more threads.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // The process was forked since: it has the team, but not its threads.
  bool lost_by_fork() const;
  // Calls job(member) on every member and returns when all have returned. job must not throw. Not when
  // the threads are lost.
  void run(const std::function<void(int)>& job);

 private:
  void wait_for_others();
  void serve(int member);
  void stop() noexcept;

  const int forks_;  // behind the process that made the team
  const bool spin_;  // as many cores as members: waiting threads may spin
  // What members wait for, and what their caller waits for: a cache line each.
  alignas(64) std::atomic<const std::function<void(int)>*> job_{nullptr};
  std::atomic<std::uint32_t> generation_{0};  // counts jobs
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int> running_{0};
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
