// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace lockstep {

// The moment at which a bounded wait gives up. Every blocking call of the library takes or owns
// one.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;

  // `wait` from now; the end of time where that cannot be represented.
  static Deadline after(Duration wait) {
    const Clock::time_point now = Clock::now();
    if (wait > std::chrono::floor<Duration>(Clock::time_point::max() - now))
      return Deadline(Clock::time_point::max());
    return Deadline(now + wait);
  }
  explicit Deadline(Clock::time_point when) : when_(when) {}

  Clock::time_point when() const { return when_; }
  bool passed() const { return Clock::now() >= when_; }
  // Time left, zero once passed.
  Duration remaining() const {
    const auto left = std::chrono::duration_cast<Duration>(when_ - Clock::now());
    return left > Duration::zero() ? left : Duration::zero();
  }

 private:
  Clock::time_point when_;
};

}  // namespace lockstep
