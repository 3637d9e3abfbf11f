// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/update.h>
#include <lockstep/optim/rule_optimizer.h>

#include <array>
#include <utility>

namespace lockstep::optim {
namespace {

std::vector<OptimizerSlot> slots_of(const UpdateRule& rule) {
  std::vector<OptimizerSlot> slots;
  for (const UpdateSlot& slot : update_slots(rule))
    slots.push_back({.name = slot.name, .start = slot.start});
  return slots;
}

// update_values of the variable and its slots, `count` of them.
template <std::size_t count, class F>
void update_together(const Variable& variable, std::span<const Variable> slots, F&& f) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    update_values(std::array{variable, slots[k]...}, f);
  }(std::make_index_sequence<count>());
}

}  // namespace

RuleOptimizer::RuleOptimizer(const UpdateRule& rule, const OptimizerOptions& options,
                             SourceLocation at)
    : Optimizer(options, slots_of(rule), at), rule_(rule) {}

bool RuleOptimizer::updates_by_rows() const { return lockstep::updates_by_rows(rule_); }

void RuleOptimizer::update(const Update& update) const {
  const auto apply = [&](auto& values) {
    apply_update(rule_, values, update.gradient,
                 {.learning_rate = update.learning_rate,
                  .number = update.step,
                  .gradient_scale = update.gradient_scale,
                  .weight_decay = update.weight_decay,
                  .rows = update.rows});
  };
  switch (update.slots.size()) {
    case 0:
      return update_together<0>(update.variable, update.slots, apply);
    case 1:
      return update_together<1>(update.variable, update.slots, apply);
    case 2:
      return update_together<2>(update.variable, update.slots, apply);
    default:
      return update_together<3>(update.variable, update.slots, apply);
  }
}

}  // namespace lockstep::optim
