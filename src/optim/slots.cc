// SPDX-License-Identifier: Apache-2.0
#include "optim/slots.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <utility>

namespace lockstep::optim {

std::vector<std::span<const Variable>> Optimizer::Slots::of(std::span<const Variable> variables) {
  std::vector<std::span<const Variable>> slots;
  slots.reserve(variables.size());
  const std::lock_guard lock(mutex_);
  for (const Variable& variable : variables) {
    const auto known = index_.find(variable.key());
    slots.push_back(known != index_.end() ? std::span<const Variable>(slots_[known->second.place])
                                          : made_for(variable));
  }
  return slots;
}

// Leaves nothing behind when it throws.
std::span<const Variable> Optimizer::Slots::made_for(const Variable& variable) {
  const bool decays = decays_by_name(variable);
  std::vector<Variable> made;
  for (const OptimizerSlot& kind : kinds_) {
    const std::string full = variable.name() + "/" + kind.name;
    std::string unique = full;
    for (int number = 1; taken_.contains(unique); ++number)
      unique = full + "_" + std::to_string(number);
    const DType dtype = kind.wide && size_of(variable.dtype()) < size_of(DType::f32)
                            ? DType::f32
                            : variable.dtype();
    const Shape shape = kind.shape ? kind.shape(variable.shape()) : variable.shape();
    made.push_back(
        Variable::slot_of(variable, shape, dtype, kind.start, std::move(unique), kind.summed));
  }
  for (const Variable& slot : made) taken_.insert(slot.name());
  index_.emplace(variable.key(), Known{slots_.size(), decays});
  return slots_.emplace_back(std::move(made));
}

bool Optimizer::Slots::decays_by_name(const Variable& variable) const try {
  return std::none_of(undecayed_.begin(), undecayed_.end(),
                      [&](const auto& name) { return std::regex_search(variable.name(), name); });
} catch (const std::regex_error& error) {
  throw ResourceExhausted(message("Optimizer::exclude_from_weight_decay",
                                  "a regular expression is too much for the name '",
                                  variable.name(), "': ", error.what()),
                          SourceLocation{});
}

void Optimizer::Slots::accumulate(const char* op, std::span<const Variable> variables, bool fresh,
                                  SourceLocation at) {
  const std::lock_guard lock(mutex_);
  if (fresh || accumulated_for_.empty()) {
    accumulated_for_.assign(variables.begin(), variables.end());
    return;
  }
  if (std::is_permutation(variables.begin(), variables.end(), accumulated_for_.begin(),
                          accumulated_for_.end()))
    return;
  const auto only_in = [](std::span<const Variable> some, std::span<const Variable> others) {
    const auto found = std::find_if(some.begin(), some.end(), [&](const Variable& variable) {
      return std::find(others.begin(), others.end(), variable) == others.end();
    });
    return found == some.end() ? "no other variable" : "also '" + found->name() + "'";
  };
  throw InvalidArgument(
      message(op,
              "expected the variables of the calls before, whose gradients accumulate: those "
              "had ",
              only_in(accumulated_for_, variables), ", this one has ",
              only_in(variables, accumulated_for_),
              "; use an optimizer for each list of variables, or lists of one kind until the "
              "update is made"),
      at);
}

const Variable* Optimizer::Slots::find(const Variable& variable, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto position = std::find_if(kinds_.begin(), kinds_.end(),
                                     [&](const OptimizerSlot& kind) { return kind.name == name; });
  const auto known = index_.find(variable.key());
  if (position == kinds_.end() || known == index_.end()) return nullptr;
  return &slots_[known->second.place][static_cast<std::size_t>(position - kinds_.begin())];
}

void Optimizer::Slots::exclude_from_weight_decay(const std::vector<std::string>& names,
                                                 SourceLocation at) {
  constexpr const char* kOp = "Optimizer::exclude_from_weight_decay";
  const std::lock_guard lock(mutex_);
  if (!index_.empty())
    throw FailedPrecondition(
        message(kOp, "expected to be called before the first update or build()"), at);
  std::vector<std::regex> expressions;
  for (const std::string& name : names) try {
      expressions.emplace_back(name);
    } catch (const std::regex_error& error) {
      throw InvalidArgument(
          message(kOp, "expected regular expressions, got '", name, "': ", error.what()), at);
    }
  undecayed_ = std::move(expressions);
}

bool Optimizer::Slots::decays(const Variable& variable) {
  const std::lock_guard lock(mutex_);
  const auto known = index_.find(variable.key());
  return known == index_.end() || known->second.decays;
}

void Optimizer::Slots::visit_state(StateVisitor& visitor) {
  const std::lock_guard lock(mutex_);
  for (auto& slots : slots_)
    for (Variable& slot : slots) slot.visit_state(visitor);
}

}  // namespace lockstep::optim
