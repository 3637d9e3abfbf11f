// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/optimizer.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::optim {

// The slots of all variables that an optimizer has met. Thread-safe; slots are never moved or
// removed.
class Optimizer::Slots {
 public:
  explicit Slots(std::vector<std::string> names) : names_(std::move(names)) {}

  // Of each variable its slots, zeros where they are new.
  std::vector<std::span<const Variable>> of(std::span<const Variable> variables);
  // Null when the variable has no such slot.
  const Variable* find(const Variable& variable, std::string_view name);
  void visit_state(StateVisitor& visitor);

 private:
  std::span<const Variable> made_for(const Variable& variable);

  const std::vector<std::string> names_;
  std::mutex mutex_;
  std::deque<std::vector<Variable>> slots_;  // in the order in which variables were met
  std::unordered_map<std::uint64_t, std::size_t> index_;  // into slots_, by the variable's key
  std::set<std::string> taken_;
};

}  // namespace lockstep::optim
