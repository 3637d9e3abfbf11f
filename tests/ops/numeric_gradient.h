// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

#include <functional>
#include <vector>

#include "support/values.h"

namespace lockstep::testing {

// A function of f64 tensors.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// x with `step` added to one element.
inline Tensor moved(const Tensor& x, std::size_t element, double step) {
  std::vector<double> values = x.to_vector<double>();
  values[element] += step;
  return Tensor(x.shape(), std::span<const double>(values));
}

// sum(f(x) weights): a number whose gradient meets every element of f with another weight.
inline Tensor weighted_sum(const Function& f, const std::vector<Tensor>& x) {
  const Tensor y = f(x);
  return sum(y * Noise(99).tensor<double>(y.shape()));
}

inline std::vector<Tensor> tape_gradients(const Function& f, const std::vector<Tensor>& x) {
  GradientTape tape;
  for (const Tensor& input : x) tape.watch(input);
  return tape.gradient(weighted_sum(f, x), x);
}

// Gradients by the tape equal central differences, element by element. An undefined one, of an
// input that f does not depend on, counts as zero.
inline void expect_gradients(const Function& f, const std::vector<Tensor>& x,
                             double tolerance = 1e-7) {
  constexpr double kStep = 1e-5;
  const std::vector<Tensor> gradients = tape_gradients(f, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> found(static_cast<std::size_t>(x[i].num_elements()), 0.0);
    if (gradients[i].defined()) {
      ASSERT_EQ(gradients[i].shape(), x[i].shape()) << "input " << i;
      found = gradients[i].to_vector<double>();
    }
    for (std::size_t element = 0; element < found.size(); ++element) {
      std::vector<Tensor> above = x, below = x;
      above[i] = moved(x[i], element, kStep);
      below[i] = moved(x[i], element, -kStep);
      const double difference =
          weighted_sum(f, above).item<double>() - weighted_sum(f, below).item<double>();
      ASSERT_NEAR(found[element], difference / (2 * kStep), tolerance)
          << "input " << i << ", element " << element << " of " << x[i].shape().to_string();
    }
  }
}

// The same for the gradients of the gradients: of the sum of the squares of all first ones.
inline void expect_second_gradients(const Function& f, const std::vector<Tensor>& x,
                                    double tolerance = 1e-6) {
  expect_gradients(
      [&](const std::vector<Tensor>& inputs) {
        Tensor total;
        for (const Tensor& gradient : tape_gradients(f, inputs)) {
          const Tensor squares = sum(square(gradient));
          total = total.defined() ? total + squares : squares;
        }
        return total;
      },
      x, tolerance);
}

}  // namespace lockstep::testing
