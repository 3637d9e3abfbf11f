// SPDX-License-Identifier: Apache-2.0
// The moving averages of weights that Ema asks for.
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/update.h>
#include <lockstep/optim/optimizer.h>

#include <array>

#include "optim/slots.h"

namespace lockstep::optim {

void Optimizer::update_average(const Variable& variable, const Variable& average,
                               const Tensor& number) const {
  const Tensor value = variable.read();
  update_values(std::array{average}, [&](auto& values) {
    apply_update(AverageRule{.momentum = ema_.momentum}, values, value,
                 {.learning_rate = Tensor(0.0), .number = number});
  });
  if (ema_.overwrite_frequency == 0) return;
  const Tensor due = equal(mod(number, ema_.overwrite_frequency), 0);
  const bool decided = due.device().is_host();
  if (decided && !due.item<bool>()) return;
  const Tensor averaged = average.read();
  update_values(std::array{variable}, [&](auto& values) {
    values[0] = decided ? averaged : select(due, averaged, values[0]);
  });
}

void Optimizer::finalize_variable_values(std::span<const Variable> variables, SourceLocation at) {
  const Tensor updates = iterations_.read(at);
  if (updates.device().is_host())
    require(updates.item<std::int64_t>() > 0, at, "Optimizer::finalize_variable_values",
            "expected averages, which begin with the first update, got none applied yet");
  for (Variable variable : variables) variable.assign(slot(variable, kAverage, at).read(at), at);
}

}  // namespace lockstep::optim
