// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <cstdint>

namespace lockstep {

// The state of counter-based random numbers (Philox 4x32-10): the same seed, stream and counter give
// the same numbers on every device. `stream` is the global replica id, so replicas differ; `counter`
// advances with each random op and is saved with checkpoints, so resumed runs continue.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t counter = 0;
};

// The state that the calling thread's random ops draw from: the innermost RandomScope's, else one of
// the thread's own that starts at seed 0.
LOCKSTEP_EXPORT RandomState& current_random_state() noexcept;

// Makes `state`, which must outlive the scope, the calling thread's.
class [[nodiscard]] LOCKSTEP_EXPORT RandomScope {
 public:
  explicit RandomScope(RandomState& state) noexcept;
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomState* previous_;
};

}  // namespace lockstep
