// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "system_call.h"

namespace launch {
namespace {

// A line longer than this is passed on in pieces, lest a worker without newlines fill the memory.
constexpr std::size_t kLongestLine = 1 << 20;

void write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(to, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {  // Somebody else made the terminal non-blocking.
      pollfd ready{to, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      checked(-1, "cannot pass on the workers' output");
    }
  }
}

struct Pipe {
  int read_end, write_end;
};
Pipe make_pipe() {
  int ends[2];
  checked(pipe2(ends, O_CLOEXEC), "pipe");
  return {ends[0], ends[1]};
}

// In the child: becomes the program, or says why not.
[[noreturn]] void become(const WorkerStart& start, const std::vector<std::string>& command) {
  setenv("TF_CONFIG", start.tf_config.c_str(), 1);
  setenv("LOCKSTEP_RANK", std::to_string(start.rank).c_str(), 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int code = errno == ENOENT ? 127 : 126;
  dprintf(STDERR_FILENO, "lockstep-run: cannot run %s: %s\n", arguments[0], std::strerror(errno));
  _exit(code);
}

}  // namespace

LineRelay::LineRelay(int from, int to, std::string prefix)
    : from_(from), to_(to), prefix_(std::move(prefix)) {
  fcntl(from_, F_SETFL, O_NONBLOCK);
}
LineRelay::~LineRelay() { close(); }
LineRelay::LineRelay(LineRelay&& other) noexcept
    : from_(std::exchange(other.from_, -1)),
      to_(other.to_),
      prefix_(std::move(other.prefix_)),
      pending_(std::move(other.pending_)) {}

void LineRelay::close() {
  if (from_ >= 0) ::close(from_);
  from_ = -1;
}

void LineRelay::write_line(std::string_view line) {
  write_all(to_, prefix_ + std::string(line) + "\n");
}

void LineRelay::pass_on() {
  char block[1 << 16];
  // So many blocks are more than a pipe holds; the others' turn comes even if this one never rests.
  for (int blocks = 0; is_open() && blocks < 16; ++blocks) {
    const ssize_t count = read(from_, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      if (!pending_.empty()) write_line(pending_);
      close();
      return;
    }
    std::string_view rest(block, static_cast<std::size_t>(count));
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      write_line(pending_ + std::string(rest.substr(0, end)));
      pending_.clear();
    }
    pending_ += rest;
    if (pending_.size() > kLongestLine) write_line(std::exchange(pending_, {}));
  }
}

Worker::Worker(const WorkerStart& start, const std::vector<std::string>& command,
               std::atomic<pid_t>& group)
    : name_(start.name), group_(&group) {
  const std::string prefix = "[" + name_ + "] ";
  Pipe pipes[2];
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    pipes[stream - 1] = make_pipe();
    output_.emplace_back(pipes[stream - 1].read_end, stream, prefix);
  }
  const pid_t parent = getpid();
  pid_ = checked(fork(), "fork");
  if (pid_ == 0) {
    setpgid(0, 0);
    group = getpid();
    // Lost by a program with other rights than ours; the guardian knows those, too.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      dup2(pipes[stream - 1].write_end, stream);
    become(start, command);
  }
  setpgid(pid_, pid_);  // Whoever is first: signals may follow at once.
  group = pid_;
  for (const Pipe& pipe : pipes) ::close(pipe.write_end);
}

std::string Worker::how_it_ended() const {
  if (!was_killed_) return "exited with code " + std::to_string(*exit_code_);
  const int number = *exit_code_ - 128;
  return "was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
}

bool Worker::is_output_open() const {
  return std::any_of(output_.begin(), output_.end(),
                     [](const LineRelay& relay) { return relay.is_open(); });
}

void Worker::signal(int number) {
  if (is_running()) kill(-pid_, number);
}

bool Worker::has_just_ended() {
  if (!is_running()) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0)
    return false;
  // Until it is waited for, nobody else can be given its number.
  kill(-pid_, SIGKILL);
  *group_ = 0;
  waitpid(pid_, nullptr, 0);
  was_killed_ = info.si_code != CLD_EXITED;
  exit_code_ = info.si_status + (was_killed_ ? 128 : 0);
  for (LineRelay& relay : output_) relay.pass_on();
  return true;
}

}  // namespace launch
