// SPDX-License-Identifier: Apache-2.0
#include "supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "system_call.h"

namespace launch {
namespace {

using namespace std::chrono_literals;

// Between SIGTERM and SIGKILL, and for the end of processes that were sent SIGKILL.
constexpr auto kWaitForTheEnd = 5s;
// For output of processes that left the worker's process group and outlive it.
constexpr auto kWaitForOutput = 1s;
// Signals closer to the first than this are the same wish: timeout(1) signals a process and its group.
constexpr auto kOneWish = 1s;

std::string in_seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

void say(std::string_view text) {
  const std::string line = "lockstep-run: " + std::string(text) + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

SignalQueue::SignalQueue() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&wanted, number);  // As nohup asks for.
  }
  checked(sigprocmask(SIG_BLOCK, &wanted, nullptr), "sigprocmask");
  descriptor_ = checked(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

SignalQueue::~SignalQueue() { close(descriptor_); }

int SignalQueue::next() {
  signalfd_siginfo info;
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

void Supervisor::start(const WorkerStart& worker, const std::vector<std::string>& command) {
  workers_.emplace_back(worker, command, guardian_.group(workers_.size()));
}

int Supervisor::wait() {
  while (is_anyone_running()) {
    wait_for_events();
    take_signals();
    look_for_ends();
    if (Clock::now() >= next_step_) take_next_step();
  }
  next_step_ = Clock::now() + kWaitForOutput;
  while (is_output_open() && Clock::now() < next_step_) wait_for_events();
  return first_failure_;
}

// Sleeps until something happens, at the latest until the next step, and passes on output.
void Supervisor::wait_for_events() {
  std::vector<pollfd> ready = {{signals_.descriptor(), POLLIN, 0}};
  std::vector<LineRelay*> relays;
  for (Worker& worker : workers_)
    for (LineRelay& relay : worker.output())
      if (relay.is_open()) {
        ready.push_back({relay.descriptor(), POLLIN, 0});
        relays.push_back(&relay);
      }
  int timeout = -1;
  if (next_step_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_step_ - Clock::now());
    timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000'000));
  }
  if (poll(ready.data(), ready.size(), timeout) < 0) {
    if (errno != EINTR) checked(-1, "poll");
    return;
  }
  for (std::size_t i = 0; i < relays.size(); ++i)
    if (ready[i + 1].revents != 0) relays[i]->pass_on();
}

void Supervisor::take_signals() {
  while (const int number = signals_.next()) {
    if (number == SIGCHLD) continue;
    if (!signalled_at_) {
      signalled_at_ = Clock::now();
      say(std::string("passing on signal ") + std::to_string(number) + " (" + strsignal(number) +
          ")");
      signal_all(number);
      if (phase_ == Phase::running) enter(Phase::grace, grace_);
    } else if (Clock::now() - *signalled_at_ >= kOneWish) {
      say("killing all workers");
      signal_all(SIGKILL);
      enter(Phase::killing, kWaitForTheEnd);
    }
  }
}

void Supervisor::look_for_ends() {
  for (Worker& worker : workers_) {
    if (!worker.has_just_ended() || worker.exit_code() == 0) continue;
    std::string text = worker.name() + " " + worker.how_it_ended();
    if (first_failure_ == 0) {
      first_failure_ = worker.exit_code();
      if (phase_ == Phase::running) {
        if (is_anyone_running()) text += "; the others have " + in_seconds(grace_) + " to end";
        enter(Phase::grace, grace_);
      }
    }
    say(text);
  }
}

void Supervisor::take_next_step() {
  switch (phase_) {
    case Phase::running:
      break;
    case Phase::grace:
      say(names_of_running() + " still running; sending SIGTERM");
      signal_all(SIGTERM);
      enter(Phase::terminating, kWaitForTheEnd);
      break;
    case Phase::terminating:
      say(names_of_running() + " still running; sending SIGKILL");
      signal_all(SIGKILL);
      enter(Phase::killing, kWaitForTheEnd);
      break;
    case Phase::killing:
      throw std::runtime_error(names_of_running() + " still running after SIGKILL; giving up");
  }
}

void Supervisor::enter(Phase phase, Clock::duration wait) {
  phase_ = phase;
  next_step_ = Clock::now() + wait;
}

void Supervisor::signal_all(int number) {
  for (Worker& worker : workers_) worker.signal(number);
}

bool Supervisor::is_anyone_running() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.is_running(); });
}

bool Supervisor::is_output_open() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.is_output_open(); });
}

std::string Supervisor::names_of_running() const {
  std::string names;
  for (const Worker& worker : workers_)
    if (worker.is_running()) names += (names.empty() ? "" : ", ") + worker.name();
  return names;
}

}  // namespace launch
