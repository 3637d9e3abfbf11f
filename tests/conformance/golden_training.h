// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/lockstep.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/values.h"

// Programs that TensorFlow has trained under MirroredStrategy (tests/golden/training.py) are trained
// here from the same weights, with the same data, on as many replicas.
namespace lockstep::testing {

using Json = nlohmann::json;

struct Examples {
  Tensor x, y;
};

// Inputs of noise, and labels: which of a row's first numbers is the largest.
Examples classified(Noise& noise, const Shape& shape, std::int64_t classes);

struct GoldenModel {
  std::vector<Variable> variables;                      // by the names that the fixture has
  std::function<Tensor(const Examples& batch)> losses;  // in training, [rows]
};

struct GoldenProgram {
  std::function<Examples(Noise& noise, std::int64_t rows)> data;
  std::function<GoldenModel()> make;  // in the strategy's scope, under a policy of the case's dtype
};

// Trains it in all cases of the fixture and expects TensorFlow's losses and, in f64, weights.
void expect_trained_as_golden(const std::string& fixture, const GoldenProgram& program);

// The losses of a step as a program's model.
template <class Model>
GoldenModel classifier(const Model& model) {
  return {model.variables(), [model](const Examples& batch) {
            return nn::sparse_softmax_cross_entropy(batch.y, model(batch.x, {.training = true}));
          }};
}

}  // namespace lockstep::testing
