// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& test,
                           const std::map<std::string, std::string>& environment)
    : file_(::memfd_create("output", MFD_CLOEXEC)) {
  std::vector<std::string> arguments{"/proc/self/exe", "--gtest_filter=" + test,
                                     "--gtest_also_run_disabled_tests"};
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : environment) variables.push_back(name + '=' + value);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, file_, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, file_, STDERR_FILENO);
  const int error = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                                  pointers(arguments).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0 || file_ < 0) throw std::runtime_error("cannot start a child process");
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(file_);
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  for (int status = 0; pid_ > 0; std::this_thread::sleep_for(10ms)) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    if (Clock::now() >= end) break;
  }
  return std::nullopt;
}

std::string ChildProcess::output() const {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0;
       (got = ::pread(file_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

bool ChildProcess::says(const std::string& text, std::chrono::milliseconds limit) const {
  const auto end = Clock::now() + limit;
  while (output().find(text) == std::string::npos) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

}  // namespace lockstep::testing
