// SPDX-License-Identifier: Apache-2.0
// op_chains <count> <seed>: writes random chains of ops with their values and gradients, one JSON
// object per line, for replay.py.
#include <lockstep/autodiff/tape.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "conformance/chains/op_chain.h"

namespace lockstep::testing {
namespace {

std::string list(const auto& values, auto&& text) {
  std::string all = "[";
  for (const auto& value : values) all += (all.size() > 1 ? "," : "") + text(value);
  return all + "]";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string integer(std::int64_t value) { return std::to_string(value); }

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string tensor(const Tensor& x) {
  if (!x.defined()) return "null";
  return "[" + list(x.shape().dims(), integer) + "," + list(x.to_vector<double>(), number) + "]";
}

std::string step(const ChainStep& step) {
  const auto attribute = [](const auto& named) {
    return quoted(named.first) + ":" + list(named.second, integer);
  };
  std::string attributes = list(step.attributes.lists, attribute);
  attributes.front() = '{';
  attributes.back() = '}';
  return "[" + quoted(step.op->name) + "," + list(step.arguments, integer) + "," + attributes +
         "," + quoted(step.attributes.text) + "]";
}

void write(std::uint64_t seed) {
  const OpChain chain = random_chain(seed);
  GradientTape tape;
  for (const Tensor& input : chain.inputs) tape.watch(input);
  const Tensor value = chain(chain.inputs);
  const std::vector<double> weights = chain_weights(value.num_elements());
  const std::vector<Tensor> gradients =
      tape.gradient(value, chain.inputs,
                    {.target_gradient = Tensor(value.shape(), std::span<const double>(weights))});
  std::printf("{\"seed\":%s,\"inputs\":%s,\"steps\":%s,\"value\":%s,\"gradients\":%s}\n",
              std::to_string(seed).c_str(), list(chain.inputs, tensor).c_str(),
              list(chain.steps, step).c_str(), tensor(value).c_str(),
              list(gradients, tensor).c_str());
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: op_chains <count> <seed>\n");
    return 2;
  }
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t i = 0; i < count; ++i) lockstep::testing::write(seed + i);
}
