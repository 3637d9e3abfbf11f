// SPDX-License-Identifier: Apache-2.0
#include <lockstep/telemetry/step_timer.h>

#include <cstdio>
#include <utility>

namespace lockstep::telemetry {
namespace {

thread_local PhaseTimes* current = nullptr;

}  // namespace

Phase PhaseTimes::switch_to(Phase phase) {
  if (running_) {
    const Clock::time_point now = Clock::now();
    times_[static_cast<std::size_t>(current_)] += now - since_;
    since_ = now;
  }
  return std::exchange(current_, phase);
}

void PhaseTimes::start(Phase phase) {
  current_ = phase;
  since_ = Clock::now();
  running_ = true;
}

void PhaseTimes::stop() {
  switch_to(current_);
  running_ = false;
}

PhaseTimesScope::PhaseTimesScope(PhaseTimes* times) noexcept
    : previous_(std::exchange(current, times)) {}
PhaseTimesScope::~PhaseTimesScope() { current = previous_; }

PhaseScope::PhaseScope(Phase phase) : times_(current) {
  if (times_) previous_ = times_->switch_to(phase);
}
PhaseScope::~PhaseScope() {
  if (times_) times_->switch_to(previous_);
}

std::string StepReport::to_table() const {
  const double outside = total - input - compute - communication - update;
  const std::pair<const char*, double> rows[] = {{"input", input},
                                                 {"compute", compute},
                                                 {"exposed communication", communication},
                                                 {"update", update},
                                                 {"outside steps", outside},
                                                 {"total", total}};
  std::string table;
  char line[96];
  std::snprintf(line, sizeof line, "%-22s %12s %8s\n", "phase", "ms/step", "share");
  table += line;
  for (const auto& [name, seconds] : rows) {
    const double per_step = steps > 0 ? 1e3 * seconds / static_cast<double>(steps) : 0;
    const double share = total > 0 ? 100 * seconds / total : 0;
    std::snprintf(line, sizeof line, "%-22s %12.3f %7.1f%%\n", name, per_step, share);
    table += line;
  }
  return table;
}

}  // namespace lockstep::telemetry
