// SPDX-License-Identifier: Apache-2.0
#include "guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "system_call.h"

namespace launch {

static_assert(std::atomic<pid_t>::is_always_lock_free, "shared between processes");

Guardian::Guardian(std::size_t count) : count_(count) {
  void* const memory = mmap(nullptr, count * sizeof(*groups_), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  checked(memory == MAP_FAILED ? -1 : 0, "mmap");
  groups_ = static_cast<std::atomic<pid_t>*>(memory);  // zero pages: all of them 0
  int ends[2];
  checked(pipe2(ends, O_CLOEXEC), "pipe");
  pid_ = checked(fork(), "fork");
  if (pid_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  lifeline_ = ends[1];
}

Guardian::~Guardian() {
  close(lifeline_);
  waitpid(pid_, nullptr, 0);
  munmap(groups_, count_ * sizeof(*groups_));
}

// The lifeline's other end is held by the parent alone; reading ends when the parent does.
void Guardian::guard(int lifeline) {
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "lockstep-guard");
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(descriptor);
  char byte;
  while (read(lifeline, &byte, 1) < 0 && errno == EINTR) {
  }
  for (std::size_t i = 0; i < count_; ++i)
    if (const pid_t group = groups_[i]; group > 0) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace launch
