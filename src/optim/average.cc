// SPDX-License-Identifier: Apache-2.0
// The moving averages of weights that Ema asks for.
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/update.h>
#include <lockstep/optim/optimizer.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <array>

#include "optim/slots.h"

namespace lockstep::optim {
namespace {

// A variable, its average and whether that has begun.
struct Averaged {
  Variable variable, average, begun;
};

// Every component by its own.
void finalize_outside(const Averaged& each) {
  const std::vector<Tensor> averages = each.average.local_values();
  for (std::size_t i = 0; i < averages.size(); ++i)
    Variable(each.variable).set_local_value(i, averages[i]);
}

void finalize_component(const Averaged& each) {
  const Tensor average = each.average.read(), begun = each.begun.read();
  update_values(std::array{each.variable}, [&](std::array<Tensor, 1>& value) {
    value[0] = begun.device().is_host() ? average : select(equal(begun, 0), value[0], average);
  });
}

}  // namespace

void Optimizer::update_average(const Variable& variable, std::span<const Variable> average,
                               const Tensor& number) const {
  const Tensor value = variable.read(), begun = average[1].read();
  update_values(std::array{average[0]}, [&](auto& values) {
    apply_update(AverageRule{.momentum = ema_.momentum}, values, value,
                 {.learning_rate = Tensor(0.0), .number = begun + 1});
  });
  if (!begun.device().is_host() || begun.item<double>() == 0)
    update_values(std::array{average[1]}, [](auto& values) { values[0] = ones_like(values[0]); });
  if (ema_.overwrite_frequency == 0) return;
  const Tensor due = equal(mod(number, ema_.overwrite_frequency), 0);
  const bool decided = due.device().is_host();
  if (decided && !due.item<bool>()) return;
  const Tensor averaged = average[0].read();
  update_values(std::array{variable}, [&](auto& values) {
    values[0] = decided ? averaged : select(due, averaged, values[0]);
  });
}

void Optimizer::finalize_variable_values(std::span<const Variable> variables, SourceLocation at) {
  std::vector<Averaged> all;
  for (const Variable& variable : variables) {
    const Averaged& each = all.emplace_back(
        Averaged{variable, slot(variable, kAverage, at), slot(variable, kAverageBegun, at)});
    const Tensor begun = each.begun.read(at);
    require(!begun.device().is_host() || begun.item<double>() > 0, at,
            "Optimizer::finalize_variable_values", "the average of variable '", variable.name(),
            "' has not begun: no update that concerned it was applied yet");
  }
  for (const Averaged& each : all) {
    const bool in_replica =
        !each.variable.group() || (current_replica_group() && get_replica_context());
    if (in_replica)
      finalize_component(each);
    else
      finalize_outside(each);
  }
}

}  // namespace lockstep::optim
