// SPDX-License-Identifier: Apache-2.0
// Layers give what Keras's give, and have their gradients (tests/golden/layers.py).
#include <lockstep/nn.h>

#include <map>
#include <stdexcept>

#include "nn/golden.h"

namespace lockstep::nn {
namespace {

// One number for all axes, or one for each.
Size2d size2d(const Json& value) {
  if (value.is_number()) return value.get<std::int64_t>();
  return {value.at(0).get<std::int64_t>(), value.at(1).get<std::int64_t>()};
}

Padding padding(const Json& o) {
  return o.value("padding", "valid") == std::string("same") ? Padding::same : Padding::valid;
}

Activation activation(const Json& o) {
  const std::map<std::string, Activation> known{
      {"linear", linear}, {"relu", relu}, {"tanh", tanh}, {"sigmoid", sigmoid},
      {"gelu", gelu},     {"silu", silu}, {"elu", elu},   {"softplus", softplus}};
  return known.at(o.value("activation", "linear"));
}

std::int64_t channels(const Json& one) { return one.at("inputs").at(0).at("shape").back(); }

GoldenLayer dense(const Json& one) {
  const Json& o = one.at("options");
  return golden_layer(Dense(channels(one), o.at("units"),
                            {.activation = activation(o),
                             .use_bias = o.value("use_bias", true),
                             .dtype = golden_dtype(one)}));
}

GoldenLayer conv2d(const Json& one) {
  const Json& o = one.at("options");
  return golden_layer(Conv2D(channels(one), o.at("filters"),
                             {.kernel_size = size2d(o.at("kernel_size")),
                              .strides = size2d(o.value("strides", Json(1))),
                              .padding = padding(o),
                              .dilations = size2d(o.value("dilation_rate", Json(1))),
                              .groups = o.value("groups", std::int64_t{1}),
                              .activation = activation(o),
                              .use_bias = o.value("use_bias", true),
                              .dtype = golden_dtype(one)}));
}

const std::map<std::string, GoldenLayer (*)(const Json&)> kLayers{
    {"dense", dense},
    {"conv2d", conv2d},
};

class GoldenLayers : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenLayers, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, make] : kLayers) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(GoldenLayers, GiveWhatKerasGives) {
  expect_golden_fixture(GetParam(), kLayers.at(GetParam()));
}

}  // namespace
}  // namespace lockstep::nn
