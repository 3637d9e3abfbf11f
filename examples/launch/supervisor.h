// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guardian.h"
#include "worker.h"

namespace launch {

// Signals that end a run from outside, and those of children, blocked and readable instead. Made
// before anything that should inherit them blocked.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_; }
  // The next signal, 0 when there is none.
  int next();

 private:
  int descriptor_;
};

// Runs workers to their end: passes on output and signals, and when one fails, sees to it that the
// others end, too.
class Supervisor {
 public:
  Supervisor(SignalQueue& signals, Guardian& guardian, std::chrono::milliseconds grace)
      : signals_(signals), guardian_(guardian), grace_(grace) {}

  void start(const WorkerStart& worker, const std::vector<std::string>& command);
  // Until all have ended; the exit code for the whole.
  int wait();

 private:
  using Clock = std::chrono::steady_clock;
  // What the workers that still run have been told, and what comes next.
  enum class Phase { running, grace, terminating, killing };

  void wait_for_events();
  void take_signals();
  void look_for_ends();
  void take_next_step();
  void enter(Phase phase, Clock::duration wait);
  void signal_all(int number);
  bool is_anyone_running() const;
  bool is_output_open() const;
  std::string names_of_running() const;

  SignalQueue& signals_;
  Guardian& guardian_;
  std::chrono::milliseconds grace_;
  std::vector<Worker> workers_;
  Phase phase_ = Phase::running;
  Clock::time_point next_step_ = Clock::time_point::max();
  int first_failure_ = 0;
  std::optional<Clock::time_point> signalled_at_;
};

// One line of lockstep-run's own on standard error.
void say(std::string_view text);

}  // namespace launch
