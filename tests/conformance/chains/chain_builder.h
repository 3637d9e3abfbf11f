// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "conformance/chains/op_chain.h"
#include "support/values.h"

namespace lockstep::testing {

// A chain as it grows. Each step takes the current value, if only by way of others.
class ChainBuilder {
 public:
  explicit ChainBuilder(std::uint64_t seed) : noise_(seed) {}

  // ---- random choices

  std::int64_t below(std::int64_t n);  // 0 ... n - 1
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  int axis();  // of the current value, which is no scalar; sometimes counted from the end
  std::vector<std::int64_t> some_axes();
  Shape some_shape();
  // A shape of that rank with so many elements.
  Shape factored(std::int64_t elements, int rank);

  // ---- values

  int current() const { return current_; }
  const Tensor& x() const { return at(current_); }
  const Tensor& at(int id) const;
  // A new input, uniform in [-2, 2).
  int input(const Shape& shape);
  // An earlier value or a new input that broadcasts with the current value.
  int partner();
  // Adds a step, whose result becomes the current value.
  int step(const std::string& op, std::vector<int> arguments, Attributes attributes = {});
  // Indices below `bound`, as a step of its own.
  int integers(const Shape& shape, std::int64_t bound);
  int reshaped(const Shape& shape);
  // Steps that bring a value to 0.5 and above, or between -1 and 1.
  int positive(int id) {
    return step("shifted", {step("square", {id})}, {.lists = {{"halves", {1}}}});
  }
  int bounded(int id) { return step("tanh", {id}); }

  // ---- growing

  // Tries to add the op; leaves the chain as it was where that does not do.
  void extend(const ChainOp& op);
  bool finished() const { return finished_; }
  std::size_t num_steps() const { return chain_.steps.size(); }
  OpChain chain() && { return std::move(chain_); }

 private:
  bool tame();

  Noise noise_;
  OpChain chain_;
  std::vector<Tensor> values_;  // of the steps
  int current_ = -1;
  bool finished_ = false;
};

}  // namespace lockstep::testing
