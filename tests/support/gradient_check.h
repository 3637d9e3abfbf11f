// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/tensor/tensor.h>

#include <cmath>
#include <functional>
#include <vector>

#include "support/values.h"

namespace lockstep::testing {

// A differentiable function of f64 tensors.
using Differentiable = std::function<Tensor(const std::vector<Tensor>&)>;

// The sum of f(xs) weighted by `weights`: what its gradient is checked of, so that no two elements
// of the result count alike.
inline double weighted_sum(const Tensor& y, const std::vector<double>& weights) {
  double total = 0;
  const auto values = y.data<double>();
  for (std::size_t i = 0; i < values.size(); ++i) total += weights[i] * values[i];
  return total;
}

// The tape's gradients of f at xs, with so weighted a sum as target.
inline std::vector<Tensor> weighted_gradients(const Differentiable& f,
                                              const std::vector<Tensor>& xs,
                                              const std::vector<double>& weights) {
  GradientTape tape;
  for (const Tensor& x : xs) tape.watch(x);
  const Tensor y = f(xs);
  return tape.gradient(y, xs,
                       {.target_gradient = Tensor(y.shape(), std::span<const double>(weights))});
}

// Expects the tape's gradient of f at every element of every x to be the central difference.
inline void expect_gradients(const Differentiable& f, const std::vector<Tensor>& xs,
                             double tolerance = 1e-6) {
  constexpr double kStep = 1e-5;
  Noise noise(99);
  std::vector<double> weights(static_cast<std::size_t>(f(xs).num_elements()));
  for (double& weight : weights) weight = 1.5 + noise.next();
  const std::vector<Tensor> gradients = weighted_gradients(f, xs, weights);
  for (std::size_t k = 0; k < xs.size(); ++k) {
    ASSERT_TRUE(gradients[k].defined()) << "no gradient of argument " << k;
    ASSERT_EQ(gradients[k].shape(), xs[k].shape());
    for (std::int64_t i = 0; i < xs[k].num_elements(); ++i) {
      const auto at = [&](double offset) {
        std::vector<double> values = xs[k].to_vector<double>();
        values[static_cast<std::size_t>(i)] += offset;
        std::vector<Tensor> moved = xs;
        moved[k] = Tensor(xs[k].shape(), std::span<const double>(values));
        return weighted_sum(f(moved), weights);
      };
      const double expected = (at(kStep) - at(-kStep)) / (2 * kStep);
      const double actual = gradients[k].data<double>()[static_cast<std::size_t>(i)];
      EXPECT_NEAR(actual, expected, tolerance * (1 + std::abs(expected)))
          << "argument " << k << ", element " << i;
    }
  }
}

// The same for the gradients of f themselves: gradients of gradients.
inline void expect_second_gradients(const Differentiable& f, const std::vector<Tensor>& xs,
                                    double tolerance = 1e-5) {
  for (std::size_t k = 0; k < xs.size(); ++k)
    expect_gradients(
        [&](const std::vector<Tensor>& points) {
          GradientTape tape;
          tape.watch(points[k]);
          return tape.gradient(f(points), {points[k]})[0];
        },
        xs, tolerance);
}

}  // namespace lockstep::testing
