// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::fake {

// A vector clock: for each timeline (a stream) up to which of its operations something comes after.
using Clock = std::vector<std::uint64_t>;
void join(Clock& clock, const Clock& other);

// One operation: the `time`-th of its timeline.
struct Stamp {
  std::size_t timeline = 0;
  std::uint64_t time = 0;
  const std::string* name = nullptr;  // outlives the log

  bool happens_before(const Clock& clock) const {
    return timeline < clock.size() && clock[timeline] >= time;
  }
};

// Which operation wrote each byte last, and which have read it since. Two accesses to a byte, one of
// them a write, that no clock orders are a race, in whichever order they happened to run.
class AccessLog {
 public:
  struct Access {
    std::uintptr_t begin = 0, end = 0;
    bool write = false;
  };
  // Notes the access of an operation that comes after all that `clock` has seen, and calls
  // race(earlier, earlier_wrote) for each earlier one that nothing orders before it.
  void note(const Access& access, const Stamp& stamp, const Clock& clock,
            const std::function<void(const Stamp& earlier, bool earlier_wrote)>& race);

 private:
  struct Cell {  // of the bytes up to the next cell's first
    bool written = false;
    Stamp writer;
    std::vector<Stamp> readers;  // the last of each timeline
  };
  void split(std::uintptr_t at);

  std::map<std::uintptr_t, Cell> cells_;
};

}  // namespace lockstep::fake
