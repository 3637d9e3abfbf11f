// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/tensor.h>

#include <cmath>
#include <functional>
#include <vector>

namespace lockstep::nn {

// The tape's gradients of a scalar f64 `loss` with respect to f64 variables against central
// differences.
inline void expect_central_differences(std::vector<Variable> variables,
                                       const std::function<Tensor()>& loss) {
  constexpr double kStep = 1e-6, kTolerance = 1e-7;
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    gradients = tape.gradient(loss(), variables);
  }
  for (std::size_t v = 0; v < variables.size(); ++v) {
    Variable& variable = variables[v];
    ASSERT_TRUE(gradients[v].defined()) << variable.name();
    ASSERT_EQ(gradients[v].shape(), variable.shape());
    const std::vector<double> at = variable.read().to_vector<double>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::vector<double> moved = at;
      const auto loss_at = [&](double x) {
        moved[i] = x;
        variable.assign(Tensor(variable.shape(), std::span<const double>(moved)));
        return loss().item<double>();
      };
      const double expected = (loss_at(at[i] + kStep) - loss_at(at[i] - kStep)) / (2 * kStep);
      const double scale = std::max(1.0, std::abs(expected));
      EXPECT_NEAR(gradients[v].data<double>()[i], expected, kTolerance * scale)
          << variable.name() << " element " << i;
    }
    variable.assign(Tensor(variable.shape(), std::span<const double>(at)));
  }
}

// count values that look random: in (-1, 1), none near 0.
inline Tensor scattered(const Shape& shape, double phase = 0) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    const double x = std::sin(12.9898 * static_cast<double>(i + 1) + phase);
    values.push_back(std::abs(x) < 0.05 ? x + 0.2 : x);
  }
  return Tensor(shape, std::span<const double>(values));
}

}  // namespace lockstep::nn
