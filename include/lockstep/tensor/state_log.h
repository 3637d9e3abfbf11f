// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace lockstep {

// Stands between a thread and mutable state: what runs a function again (recompute) keeps what its
// accesses to variables gave, and gives the same the second time.
class LOCKSTEP_EXPORT StateLog {
 public:
  virtual ~StateLog();
  // What an access to this state gives: a read, or an assignment, which gives what a read does
  // afterwards. `run` does it, now or never. `state` is the variable's key.
  virtual Tensor access(std::uint64_t state, const std::function<Tensor()>& run) = 0;
};

// The calling thread's log, null when accesses are nobody's business.
LOCKSTEP_EXPORT StateLog* current_state_log() noexcept;

// Sets the calling thread's log while it lives.
class [[nodiscard]] LOCKSTEP_EXPORT StateLogScope {
 public:
  explicit StateLogScope(StateLog* log) noexcept;
  ~StateLogScope();
  StateLogScope(const StateLogScope&) = delete;
  StateLogScope& operator=(const StateLogScope&) = delete;

 private:
  StateLog* previous_;
};

// run(), by way of the calling thread's log if it has one.
template <class Run>
Tensor logged_access(std::uint64_t state, Run&& run) {
  StateLog* const log = current_state_log();
  return log ? log->access(state, run) : run();
}

}  // namespace lockstep
