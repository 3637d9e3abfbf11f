// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace lockstep::testing {

// A test of this very program run in a process of its own, as `ThisSuite.DISABLED_Name`, with
// variables added to its environment. Killed when the object is destroyed.
class ChildProcess {
 public:
  ChildProcess(const std::string& test, const std::map<std::string, std::string>& environment);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void signal(int number) const;
  // The exit code, minus the signal that ended it; nothing if it is still running then.
  std::optional<int> wait(std::chrono::milliseconds limit);
  // What it has written to standard output and error so far.
  std::string output() const;
  // Waits until the output holds `text`; false if it does not in time.
  bool says(const std::string& text, std::chrono::milliseconds limit) const;

 private:
  int pid_ = -1;
  int file_ = -1;
};

}  // namespace lockstep::testing
