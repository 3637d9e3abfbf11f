// SPDX-License-Identifier: Apache-2.0
#include "optim/slots.h"

#include <algorithm>

namespace lockstep::optim {

std::vector<std::span<const Variable>> Optimizer::Slots::of(std::span<const Variable> variables) {
  std::vector<std::span<const Variable>> slots;
  slots.reserve(variables.size());
  const std::lock_guard lock(mutex_);
  for (const Variable& variable : variables) {
    const auto known = index_.find(variable.key());
    slots.push_back(known != index_.end() ? std::span<const Variable>(slots_[known->second])
                                          : made_for(variable));
  }
  return slots;
}

std::span<const Variable> Optimizer::Slots::made_for(const Variable& variable) {
  std::vector<Variable> made;
  for (const std::string& name : names_) {
    const std::string full = variable.name() + "/" + name;
    std::string unique = full;
    for (int number = 1; !taken_.insert(unique).second; ++number)
      unique = full + "_" + std::to_string(number);
    made.push_back(Variable::zeros_like(variable, std::move(unique)));
  }
  index_.emplace(variable.key(), slots_.size());
  return slots_.emplace_back(std::move(made));
}

const Variable* Optimizer::Slots::find(const Variable& variable, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto position = std::find(names_.begin(), names_.end(), name);
  const auto known = index_.find(variable.key());
  if (position == names_.end() || known == index_.end()) return nullptr;
  return &slots_[known->second][static_cast<std::size_t>(position - names_.begin())];
}

void Optimizer::Slots::visit_state(StateVisitor& visitor) {
  const std::lock_guard lock(mutex_);
  for (auto& slots : slots_)
    for (Variable& slot : slots) slot.visit_state(visitor);
}

}  // namespace lockstep::optim
