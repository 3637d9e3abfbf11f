// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/optimizer.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::optim {

inline constexpr const char* kAccumulator = "accumulator";
// The slot of a variable's moving average, and whether it has begun, 0 or 1: the last where there are
// any.
inline constexpr const char* kAverage = "average";
inline constexpr const char* kAverageBegun = "average_begun";

// The slots of all variables that an optimizer has met. Thread-safe; slots are never moved or
// removed.
class Optimizer::Slots {
 public:
  explicit Slots(std::vector<OptimizerSlot> kinds) : kinds_(std::move(kinds)) {}

  // Of each variable its slots, at their start where they are new.
  std::vector<std::span<const Variable>> of(std::span<const Variable> variables);
  // Null when the variable has no such slot.
  const Variable* find(const Variable& variable, std::string_view name);
  void visit_state(StateVisitor& visitor);
  // A call with these variables, `fresh` if nothing waits for an update. Throws InvalidArgument for
  // others than those of the call before, unless it is fresh.
  void accumulate(const char* op, std::span<const Variable> variables, bool fresh,
                  SourceLocation at);

  // See Optimizer. `decays` is of a variable that has slots.
  void exclude_from_weight_decay(const std::vector<std::string>& names, SourceLocation at);
  bool decays(const Variable& variable);

 private:
  struct Known {
    std::size_t place;  // in slots_
    bool decays;
  };
  std::span<const Variable> made_for(const Variable& variable);
  bool decays_by_name(const Variable& variable) const;

  const std::vector<OptimizerSlot> kinds_;
  std::mutex mutex_;
  std::deque<std::vector<Variable>> slots_;         // in the order in which variables were met
  std::unordered_map<std::uint64_t, Known> index_;  // by the variable's key
  std::vector<std::regex> undecayed_;
  std::set<std::string> taken_;
  std::vector<Variable> accumulated_for_;
};

}  // namespace lockstep::optim
