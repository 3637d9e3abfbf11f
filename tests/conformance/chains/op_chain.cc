// SPDX-License-Identifier: Apache-2.0
#include "conformance/chains/op_chain.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "conformance/chains/chain_builder.h"

namespace lockstep::testing {
namespace {

constexpr std::size_t kMostSteps = 12;
constexpr std::int64_t kMostElements = 400;
constexpr int kMostAxes = 5;

const ChainOp& op_named(const std::string& name) {
  for (const ChainOp& op : chain_ops())
    if (op.name == name) return op;
  throw std::logic_error("no op " + name);
}

std::vector<Tensor> arguments_of(const ChainStep& step, const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& values) {
  std::vector<Tensor> arguments;
  for (const int id : step.arguments)
    arguments.push_back(id < 0 ? inputs.at(static_cast<std::size_t>(-1 - id))
                               : values.at(static_cast<std::size_t>(id)));
  return arguments;
}

bool broadcast_together(const Shape& a, const Shape& b) {
  std::int64_t elements = 1;
  for (int i = 1; i <= std::max(a.rank(), b.rank()); ++i) {
    const std::int64_t m = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t n = i <= b.rank() ? b[b.rank() - i] : 1;
    if (m != n && m != 1 && n != 1) return false;
    elements *= m == 1 ? n : m;
  }
  return elements <= kMostElements;
}

}  // namespace

// ---- chains

Tensor OpChain::operator()(const std::vector<Tensor>& given) const {
  std::vector<Tensor> values;
  for (const ChainStep& step : steps)
    values.push_back(step.op->apply(arguments_of(step, given, values), step.attributes));
  return values.back();
}

OpChain random_chain(std::uint64_t seed) {
  ChainBuilder chain(seed);
  chain.input(chain.some_shape());
  const auto wanted = static_cast<std::size_t>(3 + chain.below(kMostSteps - 2));
  for (int tries = 0; tries < 300 && !chain.finished() && chain.num_steps() < wanted; ++tries)
    chain.extend(chain_ops()[static_cast<std::size_t>(chain.below(std::ssize(chain_ops())))]);
  if (chain.num_steps() == 0) chain.step("neg", {chain.current()});
  return std::move(chain).chain();
}

std::vector<double> chain_weights(std::int64_t count) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < count; ++i)
    weights.push_back(0.25 + static_cast<double>(i * 7 % 11) / 8);
  return weights;
}

// ---- choices

std::int64_t ChainBuilder::below(std::int64_t n) {
  return static_cast<std::int64_t>((noise_.next() + 1) / 2 * static_cast<double>(n));
}

int ChainBuilder::axis() {
  const int rank = x().shape().rank();
  const int axis = static_cast<int>(below(rank));
  return one_in(3) ? axis - rank : axis;
}

std::vector<std::int64_t> ChainBuilder::some_axes() {
  std::vector<std::int64_t> axes;
  const int rank = x().shape().rank();
  for (int i = 0; i < rank; ++i)
    if (one_in(2)) axes.push_back(one_in(3) ? i - rank : i);
  return axes;
}

Shape ChainBuilder::some_shape() {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(below(5)));
  for (std::int64_t& extent : extents)
    extent = one_in(24) ? 0 : one_of<std::int64_t>({1, 2, 3, 3, 4, 5});
  return Shape(std::span<const std::int64_t>(extents));
}

Shape ChainBuilder::factored(std::int64_t elements, int rank) {
  if (rank == 0) return {};
  std::vector<std::int64_t> extents;
  for (int i = 1; i < rank; ++i) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= std::min<std::int64_t>(elements, 7); ++d)
      if (elements % d == 0) divisors.push_back(d);
    extents.push_back(divisors.empty()
                          ? 1 + below(3)
                          : divisors[static_cast<std::size_t>(below(std::ssize(divisors)))]);
    if (elements > 0) elements /= extents.back();
  }
  extents.push_back(elements);
  std::swap(extents[static_cast<std::size_t>(below(rank))], extents.back());
  return Shape(std::span<const std::int64_t>(extents));
}

// ---- values

const Tensor& ChainBuilder::at(int id) const {
  return id < 0 ? chain_.inputs.at(static_cast<std::size_t>(-1 - id))
                : values_.at(static_cast<std::size_t>(id));
}

int ChainBuilder::input(const Shape& shape) {
  chain_.inputs.push_back(noise_.tensor<double>(shape, 2));
  return -static_cast<int>(chain_.inputs.size());
}

int ChainBuilder::partner() {
  const Shape& shape = x().shape();
  if (one_in(3)) {
    std::vector<int> ids;
    for (int id = -static_cast<int>(chain_.inputs.size()); id < std::ssize(values_); ++id)
      if (at(id).dtype() == DType::f64 && broadcast_together(at(id).shape(), shape))
        ids.push_back(id);
    return ids[static_cast<std::size_t>(below(std::ssize(ids)))];
  }
  std::vector<std::int64_t> extents(shape.dims().begin(), shape.dims().end());
  if (one_in(3)) extents.erase(extents.begin(), extents.begin() + below(shape.rank() + 1));
  for (std::int64_t& extent : extents) {
    if (one_in(4)) extent = 1;
    if (extent == 1 && one_in(4)) extent = 1 + below(3);
  }
  // An extent that grew must face one of 1 there.
  const Shape made{std::span<const std::int64_t>(extents)};
  return input(broadcast_together(made, shape) ? made : shape);
}

int ChainBuilder::step(const std::string& op, std::vector<int> arguments, Attributes attributes) {
  chain_.steps.push_back({&op_named(op), std::move(arguments), std::move(attributes)});
  const ChainStep& made = chain_.steps.back();
  values_.push_back(made.op->apply(arguments_of(made, chain_.inputs, values_), made.attributes));
  return current_ = static_cast<int>(values_.size()) - 1;
}

int ChainBuilder::integers(const Shape& shape, std::int64_t bound) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.num_elements()));
  for (std::int64_t& value : values) value = below(bound);
  const std::span<const std::int64_t> dims = shape.dims();
  return step("integers", {},
              {.lists = {{"values", values},
                         {"shape", {dims.begin(), dims.end()}},
                         {"bits", {one_of<std::int64_t>({32, 64})}}}});
}

int ChainBuilder::reshaped(const Shape& shape) {
  return step("reshape", {current_},
              {.lists = {{"shape", {shape.dims().begin(), shape.dims().end()}}}});
}

// ---- growing

void ChainBuilder::extend(const ChainOp& op) {
  const auto steps = chain_.steps.size(), inputs = chain_.inputs.size();
  const int current = current_;
  if (op.make(*this, op.name) && tame() && num_steps() <= kMostSteps) return;
  chain_.steps.resize(steps);
  chain_.inputs.resize(inputs);
  values_.resize(steps);
  current_ = current;
  finished_ = false;
}

bool ChainBuilder::tame() {
  if (x().dtype() != DType::f64 || x().num_elements() > kMostElements ||
      x().shape().rank() > kMostAxes)
    return false;
  double largest = 0;
  bool finite = true;
  for (const double element : x().to_vector<double>()) {
    finite = finite && std::isfinite(element);
    largest = std::max(largest, std::abs(element));
  }
  if (!finite) {
    const std::vector<int>& arguments = chain_.steps.back().arguments;
    finished_ = std::all_of(arguments.begin(), arguments.end(),
                            [&](int id) { return at(id).num_elements() == 0; });
    return finished_;
  }
  // What is tiny may be what rounding left.
  if (largest > 1e4 || (largest > 0 && largest < 1e-6)) return false;
  if (largest > 8 || (largest > 0 && largest < 0.125))
    step("scaled", {current_}, {.lists = {{"exponent", {-std::ilogb(largest)}}}});
  return true;
}

}  // namespace lockstep::testing
