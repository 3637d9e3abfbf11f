// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/sequential.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <array>

namespace lockstep::nn {
namespace {

using Line = std::array<std::string, 3>;

// 1234567 as 1,234,567.
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto place = std::ssize(text) - 3; place > 0; place -= 3)
    text.insert(static_cast<std::size_t>(place), ",");
  return text;
}

std::int64_t elements_of(const std::vector<Variable>& variables) {
  std::int64_t elements = 0;
  for (const Variable& variable : variables) elements += variable.num_elements();
  return elements;
}

std::string shape_of(const Tensor& rows) {
  std::string text = "[?";
  for (int axis = 1; axis < rows.rank(); ++axis) text += ", " + std::to_string(rows.dim(axis));
  return text + "]";
}

std::string table_of(const std::vector<Line>& lines) {
  std::array<std::size_t, 3> widths{};
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  const std::string rule(widths[0] + widths[1] + widths[2] + 4, '-');
  std::string text;
  for (const Line& line : lines) {
    text += line[0] + std::string(widths[0] - line[0].size() + 2, ' ');
    text += line[1] + std::string(widths[1] - line[1].size() + 2, ' ');
    text += std::string(widths[2] - line[2].size(), ' ') + line[2] + "\n";
    if (&line == &lines.front()) text += rule + "\n";
  }
  return text + rule + "\n";
}

}  // namespace

std::string Sequential::summary(const SummaryOptions& options, SourceLocation at) const {
  const RecorderScope unrecorded(nullptr);
  Tensor rows;
  if (options.input_shape) {
    std::vector<std::int64_t> extents(options.input_shape->dims().begin(),
                                      options.input_shape->dims().end());
    extents.insert(extents.begin(), 0);
    rows = lockstep::zeros(Shape(extents, at, "Sequential::summary"), options.input_dtype);
  }
  std::vector<Line> lines{{"layer", "result", "parameters"}};
  std::int64_t size = input_size();
  for (const auto& layer : layers_) {
    size = layer->output_size(size);
    if (rows.defined()) rows = layer->call(rows, {}, at);
    const std::string known = size == kAnySize ? "?" : "[.., " + std::to_string(size) + "]";
    lines.push_back({layer->name(), rows.defined() ? shape_of(rows) : known,
                     grouped(elements_of(layer->variables()))});
  }
  const std::int64_t all = elements_of(variables()), trained = elements_of(trainable_variables());
  return name() + "\n" + table_of(lines) + "parameters: " + grouped(all) +
         "\n  trainable: " + grouped(trained) + "\n  not trainable: " + grouped(all - trained) +
         "\n";
}

}  // namespace lockstep::nn
