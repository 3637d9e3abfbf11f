// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/testing.h>

#include <lockstep/base/check.h>

#include <cstring>

#include "tensor/visit_dtype.h"

namespace lockstep::testing {

void require_equal_replicas(std::span<const Variable> variables, SourceLocation at) {
  for (const Variable& variable : variables) {
    if (variable.synchronization() == VariableSynchronization::on_read) continue;
    std::vector<Tensor> values = variable.local_values(at);
    for (Tensor& value : values) value = value.to_host();
    const std::size_t element = size_of(variable.dtype());
    for (std::size_t replica = 1; replica < values.size(); ++replica) {
      const auto* first = static_cast<const std::byte*>(values[0].raw_data());
      const auto* other = static_cast<const std::byte*>(values[replica].raw_data());
      const auto count = static_cast<std::size_t>(variable.num_elements());
      for (std::size_t i = 0; i < count; ++i) {
        if (std::memcmp(first + i * element, other + i * element, element) == 0) continue;
        const auto text = [&](const Tensor& value) {
          return Tensor(value.buffer().slice(i * element, element), value.dtype(), Shape{})
              .to_string();
        };
        throw InternalError(message("require_equal_replicas", "variable '", variable.name(),
                                    "' differs at index ", i, ": replica 0 holds ", text(values[0]),
                                    ", replica ", replica, " holds ", text(values[replica])),
                            at);
      }
    }
  }
}

}  // namespace lockstep::testing
