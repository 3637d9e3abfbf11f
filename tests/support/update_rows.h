// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/cast.h>
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "support/values.h"

// Every update rule with its formula in double, written from the papers and from Keras's description,
// not from the kernels.
namespace lockstep::testing {

using Doubles = std::vector<double>;

struct UpdateRow {
  std::string name;
  UpdateRule rule;
  // Changes state[0], the weights, and the slots after it by gradient g in update t.
  std::function<void(std::vector<Doubles>& state, const Doubles& g, double rate, int t,
                     double decay)>
      update;
  bool own_decay = false;  // the formula has the decay, which else comes first
  double terms = 0;        // how large the numbers are that a result near 0 is the difference of

  friend void PrintTo(const UpdateRow& row, std::ostream* out) { *out << row.name; }
};

inline void update_by_formula(const UpdateRow& row, std::vector<Doubles>& state, const Doubles& g,
                              double rate, int t, double decay) {
  if (!row.own_decay)
    for (double& w : state[0]) w -= rate * decay * w;
  row.update(state, g, rate, t, decay);
}

// f(x, g, rate, t) for each element, with its weight and slots in x.
template <class F>
auto elementwise(F f) {
  return [f](std::vector<Doubles>& state, const Doubles& g, double rate, int t, double) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      double x[5] = {};
      for (std::size_t k = 0; k < state.size(); ++k) x[k] = state[k][i];
      f(x, g[i], rate, t);
      for (std::size_t k = 0; k < state.size(); ++k) state[k][i] = x[k];
    }
  };
}

inline double norm_of(const Doubles& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

inline std::vector<UpdateRow> gradient_descent_rows() {
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
      {"lion", LionRule{.beta_1 = 0.85, .beta_2 = 0.97},
       elementwise([](double* x, double g, double rate, int) {
         const double c = 0.85 * x[1] + 0.15 * g;
         x[0] -= rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
         x[1] = 0.97 * x[1] + 0.03 * g;
       })},
      {"average", AverageRule{.momentum = 0.75},
       elementwise(
           [](double* x, double g, double, int t) { x[0] = t == 1 ? g : 0.75 * x[0] + 0.25 * g; })},
  };
}

inline std::vector<UpdateRow> adam_rows() {
  // Of Adam with betas 0.8 and 0.95: the moments.
  const auto moments = [](double* x, double g) {
    x[1] = 0.8 * x[1] + 0.2 * g;
    x[2] = 0.95 * x[2] + 0.05 * g * g;
  };
  return {
      {"adam", AdamRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3},
       elementwise([=](double* x, double g, double rate, int t) {
         moments(x, g);
         x[0] -= rate * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t)) * x[1] /
                 (std::sqrt(x[2]) + 1e-3);
       })},
      {"amsgrad", AdamRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3, .amsgrad = true},
       elementwise([=](double* x, double g, double rate, int t) {
         moments(x, g);
         x[3] = std::max(x[3], x[2]);
         x[0] -= rate * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t)) * x[1] /
                 (std::sqrt(x[3]) + 1e-3);
       })},
      {"adamax", AdamaxRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3},
       elementwise([](double* x, double g, double rate, int t) {
         x[1] = 0.8 * x[1] + 0.2 * g;
         x[2] = std::max(0.95 * x[2], std::abs(g));
         x[0] -= rate / (1 - std::pow(0.8, t)) * x[1] / (x[2] + 1e-3);
       })},
      {"nadam", NadamRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3},
       elementwise([=](double* x, double g, double rate, int t) {
         const auto schedule = [](int i) { return 0.8 * (1 - 0.5 * std::pow(0.96, i)); };
         double product = 1;
         for (int i = 1; i <= t; ++i) product *= schedule(i);
         moments(x, g);
         const double m = schedule(t + 1) * x[1] / (1 - product * schedule(t + 1)) +
                          (1 - schedule(t)) * g / (1 - product);
         x[0] -= rate * m / (std::sqrt(x[2] / (1 - std::pow(0.95, t))) + 1e-3);
       })},
  };
}

inline std::vector<UpdateRow> scaled_rows() {
  // RMSprop of rho 0.8 with its momentum in x[2] and the average gradient in x[3], if any.
  const auto rms_prop = [](double momentum, bool centered) {
    return elementwise([=](double* x, double g, double rate, int) {
      double& average = x[momentum > 0 ? 3 : 2];
      x[1] = 0.8 * x[1] + 0.2 * g * g;
      double size = x[1];
      if (centered) {
        average = 0.8 * average + 0.2 * g;
        size -= average * average;
      }
      double step = rate * g / std::sqrt(size + 1e-2);
      if (momentum > 0) step = x[2] = momentum * x[2] + step;
      x[0] -= step;
    });
  };
  const auto ftrl = [](double power) {
    return elementwise([=](double* x, double g, double rate, int) {
      const double next = x[1] + g * g;
      x[2] += g + 2 * 0.05 * x[0] - (std::pow(next, power) - std::pow(x[1], power)) / rate * x[0];
      x[1] = next;
      const double quadratic = std::pow(next, power) / rate + 2 * (0.03 + 0.5 / (2 * rate));
      x[0] = (std::clamp(x[2], -0.02, 0.02) - x[2]) / quadratic;
    });
  };
  return {
      {"rms_prop", RmsPropRule{.rho = 0.8, .epsilon = 1e-2}, rms_prop(0, false)},
      {"rms_prop_momentum", RmsPropRule{.rho = 0.8, .momentum = 0.7, .epsilon = 1e-2},
       rms_prop(0.7, false)},
      {"rms_prop_centered", RmsPropRule{.rho = 0.8, .epsilon = 1e-2, .centered = true},
       rms_prop(0, true)},
      {"rms_prop_centered_momentum",
       RmsPropRule{.rho = 0.8, .momentum = 0.7, .epsilon = 1e-2, .centered = true},
       rms_prop(0.7, true)},
      {"adagrad", AdagradRule{.initial_accumulator_value = 0.25, .epsilon = 1e-3},
       elementwise([](double* x, double g, double rate, int) {
         x[1] += g * g;
         x[0] -= rate * g / std::sqrt(x[1] + 1e-3);
       })},
      {"adadelta", AdadeltaRule{.rho = 0.8, .epsilon = 1e-3},
       elementwise([](double* x, double g, double rate, int) {
         x[1] = 0.8 * x[1] + 0.2 * g * g;
         const double delta = std::sqrt(x[2] + 1e-3) / std::sqrt(x[1] + 1e-3) * g;
         x[2] = 0.8 * x[2] + 0.2 * delta * delta;
         x[0] -= rate * delta;
       })},
      {"ftrl",
       FtrlRule{.initial_accumulator_value = 0.25,
                .l1_regularization_strength = 0.02,
                .l2_regularization_strength = 0.03,
                .l2_shrinkage_regularization_strength = 0.05,
                .beta = 0.5},
       ftrl(0.5), false, 30},
      {"ftrl_power",
       FtrlRule{.learning_rate_power = -0.3,
                .initial_accumulator_value = 0.25,
                .l1_regularization_strength = 0.02,
                .l2_regularization_strength = 0.03,
                .l2_shrinkage_regularization_strength = 0.05,
                .beta = 0.5},
       ftrl(0.3), false, 30},
  };
}

inline std::vector<UpdateRow> norm_rows() {
  return {
      {"lamb", LambRule{.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3},
       [](std::vector<Doubles>& x, const Doubles& g, double rate, int t, double) {
         Doubles direction(g.size());
         for (std::size_t i = 0; i < g.size(); ++i) {
           x[1][i] = 0.8 * x[1][i] + 0.2 * g[i];
           x[2][i] = 0.95 * x[2][i] + 0.05 * g[i] * g[i];
           direction[i] = x[1][i] / (1 - std::pow(0.8, t)) /
                          (std::sqrt(x[2][i] / (1 - std::pow(0.95, t))) + 1e-3);
         }
         const double weights = norm_of(x[0]), length = norm_of(direction);
         const double ratio = weights > 0 && length > 0 ? weights / length : 1;
         for (std::size_t i = 0; i < g.size(); ++i) x[0][i] -= ratio * rate * direction[i];
       }},
      {"lars", LarsRule{.momentum = 0.8, .trust_coefficient = 0.3, .epsilon = 1e-3},
       [](std::vector<Doubles>& x, const Doubles& g, double rate, int, double decay) {
         const double weights = norm_of(x[0]), length = norm_of(g);
         const double local =
             weights > 0 && length > 0 ? 0.3 * weights / (length + decay * weights + 1e-3) : 1;
         for (std::size_t i = 0; i < g.size(); ++i) {
           x[1][i] = 0.8 * x[1][i] + rate * local * (g[i] + decay * x[0][i]);
           x[0][i] -= x[1][i];
         }
       },
       true, 0.1},
  };
}

inline std::vector<UpdateRow> update_rows() {
  std::vector<UpdateRow> all;
  for (const auto& rows : {gradient_descent_rows(), adam_rows(), scaled_rows(), norm_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
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
