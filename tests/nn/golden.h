// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn/layer.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// Fixtures that tests/golden/layers.py wrote. A test says how to make a layer of ours from the
// options by which Keras's was made; the rest is compared here.
namespace lockstep::nn {

using Json = nlohmann::json;

// Of tests/golden/nn/.
inline Json golden_fixture(const std::string& name) {
  std::ifstream file(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/nn/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return Json::parse(file);
}

inline DType golden_dtype(const Json& one) {
  return one.at("dtype") == "f64" ? DType::f64 : DType::f32;
}

inline Tensor golden_tensor(const Json& values, const Json& shape, DType dtype) {
  const Shape extents(shape.get<std::vector<std::int64_t>>());
  if (dtype == DType::f64)
    return Tensor(extents, std::span<const double>(values.get<std::vector<double>>()));
  if (dtype == DType::f32)
    return Tensor(extents, std::span<const float>(values.get<std::vector<float>>()));
  return Tensor(extents, std::span<const std::int64_t>(values.get<std::vector<std::int64_t>>()));
}

inline void expect_golden_values(const Tensor& actual, const Json& expected, double tolerance,
                                 const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  const auto values = expected.get<std::vector<double>>();
  ASSERT_EQ(static_cast<std::size_t>(actual.num_elements()), values.size()) << what;
  const bool wide = actual.dtype() == DType::f64;
  const auto doubles = wide ? actual.to_vector<double>() : std::vector<double>{};
  const auto floats = wide ? std::vector<float>{} : actual.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(wide ? doubles[i] : static_cast<double>(floats[i]), values[i],
                tolerance * (1 + std::abs(values[i])))
        << what << ", element " << i;
}

// A layer of ours for one case: how it is called, and its variables, whose names after the layer's
// are those of Keras's weights.
struct GoldenLayer {
  std::function<Tensor(const std::vector<Tensor>& inputs, CallOptions options)> call;
  std::vector<Variable> variables;
};

// Of a layer with one input.
template <class L>
GoldenLayer golden_layer(const L& layer) {
  return {[layer](const std::vector<Tensor>& inputs, CallOptions options) {
            return layer(inputs.at(0), options);
          },
          layer.variables()};
}

inline Variable golden_variable(const GoldenLayer& layer, const std::string& name) {
  for (const Variable& variable : layer.variables)
    if (variable.name().substr(variable.name().find('/') + 1) == name) return variable;
  throw std::invalid_argument("no variable " + name);
}

inline void set_golden_weights(const Json& one, const GoldenLayer& layer) {
  ASSERT_EQ(layer.variables.size(), one.at("weights").size());
  for (const Json& weight : one.at("weights")) {
    Variable variable = golden_variable(layer, weight.at("name"));
    // Our shape: Keras has some kernels' columns as several axes.
    const auto dims = variable.shape().dims();
    variable.assign(golden_tensor(weight.at("values"),
                                  std::vector<std::int64_t>(dims.begin(), dims.end()),
                                  variable.dtype()));
  }
}

// The layer's result, the gradients of all inputs and weights and what the call changed are those of
// the case.
inline void expect_golden(const Json& one, const GoldenLayer& layer) {
  const DType dtype = golden_dtype(one);
  const double tolerance = dtype == DType::f64 ? 1e-9 : 2e-5;
  set_golden_weights(one, layer);
  std::vector<Tensor> inputs, sources;
  GradientTape tape;
  for (const Json& input : one.at("inputs")) {
    const bool numbers = input.contains("gradient");
    inputs.push_back(
        golden_tensor(input.at("values"), input.at("shape"), numbers ? dtype : DType::i64));
    if (!numbers) continue;
    tape.watch(inputs.back());
    sources.push_back(inputs.back());
  }
  for (const Json& weight : one.at("weights"))
    if (weight.contains("gradient"))
      sources.push_back(golden_variable(layer, weight.at("name")).read());
  const Tensor output = layer.call(inputs, {.training = one.at("training")});
  ASSERT_EQ(output.shape(), Shape(one.at("output").at("shape").get<std::vector<std::int64_t>>()));
  expect_golden_values(output, one.at("output").at("values"), tolerance, "output");
  const std::vector<Tensor> gradients =
      tape.gradient(output, sources,
                    {.target_gradient = golden_tensor(
                         one.at("output_gradient"), one.at("output").at("shape"), output.dtype())});
  std::size_t next = 0;
  for (const Json& input : one.at("inputs"))
    if (input.contains("gradient"))
      expect_golden_values(gradients.at(next++), input.at("gradient"), tolerance,
                           "gradient of the input");
  for (const Json& weight : one.at("weights")) {
    const std::string name = weight.at("name");
    if (weight.contains("gradient"))
      expect_golden_values(gradients.at(next++), weight.at("gradient"), tolerance,
                           "gradient of " + name);
    else
      expect_golden_values(golden_variable(layer, name).read(), weight.at("after"), tolerance,
                           name + " afterwards");
  }
}

// All cases of a fixture by the layers that `make` makes of them.
inline void expect_golden_fixture(const std::string& name,
                                  const std::function<GoldenLayer(const Json& one)>& make) {
  const Json all = golden_fixture(name);
  ASSERT_FALSE(all.at("cases").empty());
  for (const Json& one : all.at("cases")) {
    SCOPED_TRACE(name + one.at("options").dump());
    expect_golden(one, make(one));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace lockstep::nn
