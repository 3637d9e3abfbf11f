// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::telemetry {

// What a replica's thread spends a step on. `communication` is what computation does not hide: time
// spent waiting for a collective.
enum class Phase { input, compute, communication, update };
inline constexpr int kNumPhases = 4;

// Time by phase of one replica. Used by one thread at a time.
class LOCKSTEP_EXPORT PhaseTimes {
 public:
  using Clock = std::chrono::steady_clock;
  // From here on time counts for `phase`; the one before is returned.
  Phase switch_to(Phase phase);
  // Starts and stops the clock.
  void start(Phase phase);
  void stop();
  Clock::duration of(Phase phase) const { return times_[static_cast<std::size_t>(phase)]; }

 private:
  std::array<Clock::duration, kNumPhases> times_{};
  Phase current_ = Phase::compute;
  Clock::time_point since_{};
  bool running_ = false;
};

// Makes `times` what PhaseScopes of the calling thread count in; null: nothing.
class [[nodiscard]] LOCKSTEP_EXPORT PhaseTimesScope {
 public:
  explicit PhaseTimesScope(PhaseTimes* times) noexcept;
  ~PhaseTimesScope();
  PhaseTimesScope(const PhaseTimesScope&) = delete;
  PhaseTimesScope& operator=(const PhaseTimesScope&) = delete;

 private:
  PhaseTimes* previous_;
};

// The calling thread is in `phase` while this lives; scopes nest.
class [[nodiscard]] LOCKSTEP_EXPORT PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseTimes* times_;
  Phase previous_ = Phase::compute;
};

// Where the steps of a strategy spent their time: seconds in total over all steps, averaged over
// the local replicas; total is the caller's wall time from the first step's input to the last
// step's end.
struct LOCKSTEP_EXPORT StepReport {
  std::int64_t steps = 0;
  double input = 0, compute = 0, communication = 0, update = 0, total = 0;

  // A table of milliseconds per step and shares, one line per phase, and one for what the caller did
  // outside steps; for the end of a run.
  std::string to_table() const;
};

}  // namespace lockstep::telemetry
