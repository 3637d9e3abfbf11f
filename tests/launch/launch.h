// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::testing {

using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::seconds kPatience{60};

// Whether `condition` comes true before long.
template <class F>
bool soon(const F& condition, Clock::duration patience = kPatience) {
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

inline std::string contents(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return std::move(text).str();
}

inline std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

// Alive, and no zombie.
inline bool is_running(pid_t pid) {
  const std::string stat = contents("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end != stat.npos && stat.substr(name_end + 2, 1) != "Z";
}

// A run of lockstep-run in a folder of its own, where its workers' files go; killed with the test.
class Launch {
 public:
  explicit Launch(const std::vector<std::string>& arguments) {
    std::string name = ::testing::TempDir() + "lockstep-launch-XXXXXX";
    folder_ = mkdtemp(name.data());
    std::vector<std::string> words = {LOCKSTEP_RUN};
    words.insert(words.end(), arguments.begin(), arguments.end());
    start(words);
  }
  // `script` for a shell in each of `count` workers.
  Launch(int count, const std::string& script, std::vector<std::string> options = {})
      : Launch([&] {
          options.insert(options.end(), {"-n", std::to_string(count), "--", "sh", "-c", script});
          return options;
        }()) {}
  ~Launch() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // The exit code, or 128 + the signal that ended it; -1 when it does not end.
  int wait() {
    int status = 0;
    if (pid_ <= 0 || !soon([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    pid_ = 0;
    ended_ = Clock::now();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  double seconds() const { return std::chrono::duration<double>(ended_ - started_).count(); }
  void signal(int number) { kill(pid_, number); }

  std::string out() const { return contents(folder_ / "out"); }
  std::string err() const { return contents(folder_ / "err"); }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name) const { return contents(folder_ / name); }
  // The number a worker wrote to this file, once it has.
  pid_t pid_in(const std::string& name) const {
    EXPECT_TRUE(soon([&] { return file(name).ends_with('\n'); })) << name;
    return static_cast<pid_t>(std::strtol(file(name).c_str(), nullptr, 10));
  }

 private:
  void start(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addchdir_np(&files, folder_.c_str());
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&files, stream, stream == STDOUT_FILENO ? "out" : "err",
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    // Whoever runs the tests may ignore signals, and what is ignored stays so.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals, number);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    started_ = Clock::now();
    if (posix_spawn(&pid_, arguments[0], &files, &attributes, arguments.data(), environ) != 0) {
      pid_ = 0;
      ADD_FAILURE() << "cannot start " << words[0];
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }

  std::filesystem::path folder_;
  pid_t pid_ = 0;
  Clock::time_point started_, ended_;
};

}  // namespace lockstep::testing
