// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/lockstep.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/values.h"

// Programs that TensorFlow has trained under MirroredStrategy (tests/golden/training.py) are
// trained here from the same weights, with the same data, on as many replicas.
namespace lockstep::testing {

using Json = nlohmann::json;

// Of tests/golden/training/.
Json golden_training_fixture(const std::string& name);

struct Examples {
  Tensor x, y;
};
// The first values of a fixture's variables and the examples are noise of these seeds.
inline constexpr std::uint64_t kGoldenWeights = 1, kGoldenData = 2;
// Inputs of noise, and labels: which of a row's first numbers is the largest.
Examples classified(Noise& noise, const Shape& shape, std::int64_t classes);
// Floating inputs in this dtype.
Examples in_dtype(Examples examples, DType dtype);

// What one case of a fixture asks for.
inline DType golden_dtype(const Json& one) {
  return one.at("dtype") == "float64" ? DType::f64 : DType::f32;
}
std::unique_ptr<optim::Optimizer> golden_optimizer(const Json& one);
// The model's variables in the order of the fixture's weights, which are assigned to them.
std::vector<Variable> with_golden_weights(const Json& weights,
                                          const std::vector<Variable>& of_model);

// Relative to `expected`, or to 1 if it is less: 1e-9 of f64, 1e-3 of f32.
void expect_golden_loss(const Tensor& loss, double expected);
// What training.py's `checks` tells of variables in f64: 1e-9 of each one's norm.
void expect_golden_variables(const Json& kept, const std::vector<Variable>& variables);

struct GoldenModel {
  std::vector<Variable> variables;                      // by the names that the fixture has
  std::function<Tensor(const Examples& batch)> losses;  // in training, [rows]
};

struct GoldenProgram {
  std::function<Examples(Noise& noise, std::int64_t rows)> data;
  std::function<GoldenModel()> make;  // in the strategy's scope, under a policy of the case's dtype
};

// Trains it in all cases of the fixture and expects TensorFlow's losses and, in f64, variables.
void expect_trained_as_golden(const std::string& fixture, const GoldenProgram& program);

// A classifier's losses.
template <class Model>
GoldenModel classifier(const Model& model) {
  return {model.variables(), [model](const Examples& batch) {
            return nn::sparse_softmax_cross_entropy(batch.y, model(batch.x, {.training = true}));
          }};
}

}  // namespace lockstep::testing
