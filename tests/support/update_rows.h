// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/cast.h>
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/values.h"

// Every update rule with its formula in double, written from the paper or from Keras's sources, not
// from the kernels.
namespace lockstep::testing {

using Doubles = std::vector<double>;

struct UpdateRow {
  std::string name;
  UpdateRule rule;
  // Changes state[0], the weights, and the slots after it by gradient g in update t.
  std::function<void(std::vector<Doubles>& state, const Doubles& g, double rate, int t)> update;
};

// f(x, g, rate, t) for each element, with its weight and slots in x.
template <class F>
auto elementwise(F f) {
  return [f](std::vector<Doubles>& state, const Doubles& g, double rate, int t) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      double x[5] = {};
      for (std::size_t k = 0; k < state.size(); ++k) x[k] = state[k][i];
      f(x, g[i], rate, t);
      for (std::size_t k = 0; k < state.size(); ++k) state[k][i] = x[k];
    }
  };
}

inline std::vector<UpdateRow> update_rows() {
  return {
      {"sgd", SgdRule{},
       elementwise([](double* x, double g, double rate, int) { x[0] -= rate * g; })},
      {"momentum", SgdRule{.momentum = 0.9}, elementwise([](double* x, double g, double rate, int) {
         x[1] = 0.9 * x[1] - rate * g;
         x[0] += x[1];
       })},
      {"nesterov", SgdRule{.momentum = 0.8, .nesterov = true},
       elementwise([](double* x, double g, double rate, int) {
         x[1] = 0.8 * x[1] - rate * g;
         x[0] += 0.8 * x[1] - rate * g;
       })},
      {"adam", AdamRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3},
       elementwise([](double* x, double g, double rate, int t) {
         x[1] = 0.8 * x[1] + 0.2 * g;
         x[2] = 0.95 * x[2] + 0.05 * g * g;
         x[0] -= rate * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t)) * x[1] /
                 (std::sqrt(x[2]) + 1e-3);
       })},
  };
}

// Weights and slots as a rule starts.
inline std::vector<Tensor> update_start(const UpdateRule& rule, const Tensor& weights) {
  std::vector<Tensor> state{weights};
  for (const UpdateSlot& slot : update_slots(rule))
    state.push_back(full(weights.shape(), slot.start, weights.dtype()));
  return state;
}

inline UpdateStep update_step(double rate, std::int64_t number, double weight_decay = 0) {
  return {.learning_rate = Tensor(rate), .number = Tensor(number), .weight_decay = weight_decay};
}

inline Doubles doubles_of(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

}  // namespace lockstep::testing
