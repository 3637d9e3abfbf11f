// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/sequential.h>

#include <algorithm>
#include <set>

namespace lockstep::nn {
namespace {

bool contains(const std::vector<Variable>& variables, const Variable& variable) {
  return std::find(variables.begin(), variables.end(), variable) != variables.end();
}

// `name`, or the first of name_1, name_2, ... that is not taken; takes it.
std::string unique_name(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  for (int number = 1; !taken.insert(unique).second; ++number)
    unique = name + "_" + std::to_string(number);
  return unique;
}

}  // namespace

detail::AnyLayer::~AnyLayer() = default;

Sequential::Sequential(Layers layers)
    : Layer("sequential", layers.empty() ? SourceLocation{} : layers[0]->location()),
      layers_(std::move(layers)) {
  number_layers("");
  check_sizes();
  for (const auto& layer : layers_)
    for (const Variable& variable : layer->variables())
      if (!contains(variables(), variable)) adopt(variable);
}

// Variables that a layer shares with an earlier one keep their first name.
void Sequential::number_layers(const std::string& prefix) {
  std::set<std::string> layer_names, variable_names;
  std::vector<Variable> seen;
  for (const auto& layer : layers_) {
    std::vector<Variable> own = layer->variables();
    std::erase_if(own, [&](const Variable& variable) { return contains(seen, variable); });
    if (own.empty() && !layer->variables().empty()) continue;
    const std::string full = layer->name();
    layer->rename(prefix + unique_name(full.substr(full.rfind('/') + 1), layer_names));
    // A layer that cannot be renamed may bring a name that is taken.
    for (Variable& variable : own) {
      const std::string name = unique_name(variable.name(), variable_names);
      if (name != variable.name()) variable.rename(name);
      seen.push_back(variable);
    }
  }
}

void Sequential::check_sizes() const {
  const detail::AnyLayer* giver = nullptr;  // the layer that fixed `size`
  std::int64_t size = kAnySize;
  for (const auto& layer : layers_) {
    const std::int64_t takes = layer->input_size();
    require(takes == kAnySize || size == kAnySize || takes == size, layer->location(), "Sequential",
            "'", giver ? giver->name() : "", "' gives ", size, " values on the last axis, but '",
            layer->name(), "' takes ", takes, "; make the two sizes equal");
    const std::int64_t gives = layer->output_size(size);
    if (takes != kAnySize || gives != size) giver = layer.get();
    size = gives;
  }
}

Tensor Sequential::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  Tensor value = x;
  for (const auto& layer : layers_) value = layer->call(value, options, at);
  return value;
}

// That of the first layer with one, if those before it pass sizes on.
std::int64_t Sequential::input_size() const {
  constexpr std::int64_t kProbe = 7;
  for (const auto& layer : layers_) {
    if (layer->input_size() != kAnySize) return layer->input_size();
    if (layer->output_size(kProbe) != kProbe) return kAnySize;
  }
  return kAnySize;
}

std::int64_t Sequential::output_size(std::int64_t input_size) const {
  for (const auto& layer : layers_) input_size = layer->output_size(input_size);
  return input_size;
}

void Sequential::rename(const std::string& name) {
  set_name(name);
  number_layers(name + "/");
}

}  // namespace lockstep::nn
