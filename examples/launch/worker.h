// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launch {

// Passes on one stream of a worker line by line: each line goes out in one write with the prefix
// before it, so that lines of many workers never mix.
class LineRelay {
 public:
  // Owns `from`, the reading end of a pipe.
  LineRelay(int from, int to, std::string prefix);
  ~LineRelay();
  LineRelay(LineRelay&& other) noexcept;
  LineRelay& operator=(LineRelay&&) = delete;

  int descriptor() const { return from_; }
  bool is_open() const { return from_ >= 0; }
  // Passes on the whole lines of what is there, at least of all that a pipe holds, without waiting;
  // at the end of the stream also what lacks its newline, and closes.
  void pass_on();
  void close();

 private:
  void write_line(std::string_view line);

  int from_, to_;
  std::string prefix_, pending_;
};

// What a worker is started with.
struct WorkerStart {
  std::string name;  // "worker 1"
  std::string tf_config;
  int rank = 0;
};

// A program that runs as a process group of its own. It is killed when the process that started it
// dies.
class Worker {
 public:
  // `group` is where the guardian learns of the process group. Throws std::system_error when the
  // system has no more processes or descriptors; a program that cannot be run ends with code 126
  // or 127 instead, and says why.
  Worker(const WorkerStart& start, const std::vector<std::string>& command,
         std::atomic<pid_t>& group);

  const std::string& name() const { return name_; }
  bool is_running() const { return !exit_code_; }
  // Of a worker that has ended: its exit code, or 128 + the signal that ended it.
  int exit_code() const { return *exit_code_; }
  // "exited with code 3", "was killed by signal 9 (Killed)".
  std::string how_it_ended() const;

  // To all processes of the group.
  void signal(int number);
  // If the first process has ended: kills what it left behind, passes on the last output, and gives
  // true, once.
  bool has_just_ended();
  std::vector<LineRelay>& output() { return output_; }
  bool is_output_open() const;

 private:
  std::string name_;
  std::atomic<pid_t>* group_;
  pid_t pid_ = -1;
  std::vector<LineRelay> output_;
  std::optional<int> exit_code_;
  bool was_killed_ = false;
};

}  // namespace launch
