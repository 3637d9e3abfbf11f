// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::testing {

// Random programs of public ops, each a function of f64 tensors that has gradients: what devices
// make of them is compared, and what PyTorch does (replay.py).

// What an op is given beside tensors: lists of integers by name, and a text.
struct Attributes {
  std::map<std::string, std::vector<std::int64_t>> lists = {};
  std::string text = {};

  const std::vector<std::int64_t>& operator[](const char* name) const { return lists.at(name); }
  std::int64_t one(const char* name) const { return lists.at(name).at(0); }
  int axis(const char* name = "axis") const { return static_cast<int>(one(name)); }
  std::vector<int> axes(const char* name = "axes") const {
    return {(*this)[name].begin(), (*this)[name].end()};
  }
  Shape shape(const char* name = "shape") const {
    return Shape(std::span<const std::int64_t>((*this)[name]));
  }
};

class ChainBuilder;

struct ChainOp {
  const char* name;
  Tensor (*apply)(const std::vector<Tensor>& x, const Attributes& a);
  // Adds the op, and what it takes, to a chain; false where it does not fit.
  std::function<bool(ChainBuilder& chain, const std::string& op)> make;
};

const std::vector<ChainOp>& chain_ops();

// Arguments count the steps before from 0, and inputs down from -1.
struct ChainStep {
  const ChainOp* op;
  std::vector<int> arguments;
  Attributes attributes;
};

struct OpChain {
  std::vector<Tensor> inputs;  // f64
  std::vector<ChainStep> steps;

  // The last step's result, f64, given inputs of the same shapes.
  Tensor operator()(const std::vector<Tensor>& inputs) const;
};

// Values stay away from where an op jumps or its gradient does, and are neither huge nor tiny, so
// that two right computations agree in all but the last digits. Only the last step may give what is
// not finite, where it reduces nothing.
OpChain random_chain(std::uint64_t seed);

// 0.25 to 1.5: with these the results' elements are weighed in the sum whose gradients are taken.
std::vector<double> chain_weights(std::int64_t count);

}  // namespace lockstep::testing
