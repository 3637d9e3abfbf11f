// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/chains/chain_builder.h"

// Steps of ops of one value or two, conditions, reductions, products and norms.
namespace lockstep::testing {

using Chain = ChainBuilder;
using Tensors = std::vector<Tensor>;
using Extents = std::vector<std::int64_t>;
using Make = std::function<bool(Chain& c, const std::string& op)>;

// ---- what chains keep away from

inline constexpr double kApart = 1e-6;

inline bool apart(const Tensor& x, double from = 0) {
  for (const double element : x.to_vector<double>())
    if (std::abs(element - from) < kApart) return false;
  return true;
}

inline bool distinct(const Tensor& x) {
  std::vector<double> elements = x.to_vector<double>();
  std::sort(elements.begin(), elements.end());
  for (std::size_t i = 1; i < elements.size(); ++i)
    if (elements[i] - elements[i - 1] < kApart) return false;
  return true;
}

// From integers, or what is `offset` beyond them.
inline bool apart_from_integers(const Tensor& x, double offset = 0) {
  return apart((x - offset) - round(x - offset));
}

// ---- one or two values

inline bool unary(Chain& c, const std::string& op) {
  c.step(op, {c.current()});
  return true;
}

inline bool of_positive(Chain& c, const std::string& op) {
  c.step(op, {c.positive(c.current())});
  return true;
}

inline bool of_bounded(Chain& c, const std::string& op) {
  c.step(op, {c.bounded(c.current())});
  return true;
}

inline bool kinked(Chain& c, const std::string& op) { return apart(c.x()) && unary(c, op); }

// No gradient flows through the op, hence one beside it.
inline bool beside(Chain& c, const std::string& op) {
  const int x = c.current();
  c.step("add", {x, c.step(op, {x})});
  return true;
}

inline Make jumps(double offset) {
  return [=](Chain& c, const std::string& op) {
    return apart_from_integers(c.x(), offset) && beside(c, op);
  };
}

inline bool binary(Chain& c, const std::string& op) {
  int a = c.current(), b = c.partner();
  if (c.one_in(2)) std::swap(a, b);
  c.step(op, {a, b});
  return true;
}

inline bool binary_apart(Chain& c, const std::string& op) {
  const int a = c.current(), b = c.partner();
  c.step(op, {a, b});
  return apart(c.at(a) - c.at(b));
}

inline bool by_positive(Chain& c, const std::string& op) {
  const int a = c.current(), b = c.positive(c.partner());
  c.step(op, {a, b});
  return true;
}

inline bool modulo(Chain& c, const std::string& op) {
  const int a = c.current(), b = c.positive(c.partner());
  c.step(op, {a, b});
  return apart_from_integers(c.at(a) / c.at(b));
}

inline bool power(Chain& c, const std::string& op) {
  const int b = c.partner();
  c.step(op, {c.positive(c.current()), b});
  return true;
}

inline bool leaky(Chain& c, const std::string& op) {
  return apart(c.x()) && (c.step(op, {c.current(), c.partner()}), true);
}

inline bool scaled(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, {.lists = {{"exponent", {c.below(5) - 2}}}});
  return true;
}

inline bool shifted(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, {.lists = {{"halves", {c.below(7) - 3}}}});
  return true;
}

inline bool clamped(Chain& c, const std::string& op) {
  const std::int64_t low = c.below(3) - 2, high = low + 1 + c.below(3);
  const Tensor x = c.x();
  c.step(op, {c.current()}, {.lists = {{"low", {low}}, {"high", {high}}}});
  return apart(x, static_cast<double>(low)) && apart(x, static_cast<double>(high));
}

// ---- conditions

inline int condition(Chain& c, int x) {
  const Shape shape = c.at(x).shape();
  const int bound = c.input(shape);
  return c.step(c.one_of({"less", "greater"}), {x, bound});
}

inline void choose(Chain& c, int condition, int x) {
  const int other = c.input(c.one_in(2) ? Shape() : c.at(x).shape());
  if (c.one_in(2))
    c.step("select", {condition, x, other});
  else
    c.step("select", {condition, other, x});
}

inline bool compared(Chain& c, const std::string& op) {
  const int x = c.current(), other = c.partner();
  choose(c, c.step(op, {x, other}), x);
  return apart(c.at(x) - c.at(other));
}

inline bool both(Chain& c, const std::string& op) {
  const int x = c.current();
  const int a = condition(c, x), b = condition(c, x);
  choose(c, c.step(op, {a, b}), x);
  return true;
}

inline bool negated(Chain& c, const std::string& op) {
  const int x = c.current();
  choose(c, c.step(op, {condition(c, x)}), x);
  return true;
}

inline bool classified(Chain& c, const std::string& op) {
  const int x = c.current();
  choose(c, c.step(op, {x}), x);
  return true;
}

inline bool quantified(Chain& c, const std::string& op) {
  const int x = c.current();
  const int a = condition(c, x);
  c.step("select",
         {c.step(op, {a}, {.lists = {{"axes", Extents{}}, {"keep_dims", {1}}}}), x, c.input({})});
  return true;
}

inline bool chosen(Chain& c, const std::string&) {
  const int x = c.current();
  choose(c, condition(c, x), x);
  return true;
}

inline bool found(Chain& c, const std::string& op) {
  if (c.x().shape().rank() == 0) return false;
  const int x = c.current();
  c.step("gather_nd", {x, c.step(op, {condition(c, x)})});
  return true;
}

// ---- reductions

inline Attributes reduction(Chain& c) {
  return {.lists = {{"axes", c.some_axes()}, {"keep_dims", {c.below(2)}}}};
}

inline bool reduced(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, reduction(c));
  return true;
}

inline bool extreme(Chain& c, const std::string& op) {
  return c.x().num_elements() > 0 && distinct(c.x()) && reduced(c, op);
}

inline bool deviation(Chain& c, const std::string& op) {
  reduced(c, op);
  const std::vector<double> results = c.x().to_vector<double>();
  return std::all_of(results.begin(), results.end(), [](double r) { return r > 0.05; });
}

inline bool along(Chain& c, const std::string& op) {
  if (c.x().shape().rank() == 0) return false;
  c.step(op, {c.current()}, {.lists = {{"axis", {c.axis()}}}});
  return true;
}

inline bool extreme_place(Chain& c, const std::string& op) {
  const int x = c.current();
  if (c.x().shape().rank() == 0 || c.x().num_elements() == 0 || !distinct(c.x())) return false;
  const int axis = c.axis();
  const std::int64_t place = axis < 0 ? axis + c.x().shape().rank() : axis;
  const int index = c.step(op, {x}, {.lists = {{"axis", {axis}}}});
  const int column = c.step("expand_dims", {index}, {.lists = {{"axis", {place}}}});
  c.step("take_along_axis", {x, column}, {.lists = {{"axis", {axis}}}});
  return true;
}

inline bool cumulative(Chain& c, const std::string& op) {
  if (c.x().shape().rank() == 0) return false;
  c.step(op, {c.current()},
         {.lists = {{"axis", {c.axis()}}, {"exclusive", {c.below(2)}}, {"reverse", {c.below(2)}}}});
  return true;
}

inline bool unbroadcast(Chain& c, const std::string& op) {
  Extents extents(c.x().shape().dims().begin(), c.x().shape().dims().end());
  extents.erase(extents.begin(), extents.begin() + c.below(std::ssize(extents) + 1));
  for (std::int64_t& extent : extents)
    if (c.one_in(2)) extent = 1;
  c.step(op, {c.current()}, {.lists = {{"shape", extents}}});
  return true;
}

// ---- products

inline bool product(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() < 2) return false;
  const std::int64_t ta = c.below(2), tb = c.below(2);
  const std::int64_t k = shape[shape.rank() - (ta ? 2 : 1)], n = 1 + c.below(4);
  Extents extents;
  if (shape.rank() > 2 && c.one_in(2)) extents = {c.one_in(2) ? 1 : shape[shape.rank() - 3]};
  extents.insert(extents.end(), {tb ? n : k, tb ? k : n});
  const int other = c.input(Shape(std::span<const std::int64_t>(extents)));
  c.step(op, {c.current(), other}, {.lists = {{"transpose_a", {ta}}, {"transpose_b", {tb}}}});
  return true;
}

inline bool layer(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() < 1) return false;
  const std::int64_t n = 1 + c.below(4), activation = c.below(5);
  std::vector<int> arguments = {c.current(), c.input({shape[shape.rank() - 1], n})};
  if (c.one_in(2)) arguments.push_back(c.input({n}));
  if (activation == 1) {
    c.step(op, arguments, {.lists = {{"activation", {0}}}});
    if (!apart(c.x())) return false;
  }
  c.step(op, arguments, {.lists = {{"activation", {activation}}}});
  return true;
}

inline bool activated(Chain& c, const std::string& op) {
  const std::int64_t activation = c.below(5);
  const Tensor x = c.x();
  c.step(op, {c.current()}, {.lists = {{"activation", {activation}}}});
  return activation != 1 || apart(x);
}

inline bool summed_products(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const auto apply = [&](std::string text, std::vector<Shape> others) {
    std::vector<int> arguments = {c.current()};
    for (const Shape& other : others) arguments.push_back(c.input(other));
    c.step(op, arguments, {.text = std::move(text)});
    return true;
  };
  const std::int64_t i = shape.rank() > 0 ? shape[0] : 0, j = shape.rank() > 1 ? shape[1] : 0,
                     k = shape.rank() > 2 ? shape[2] : 0;
  switch (shape.rank() * 10 + c.below(4)) {
    case 10:
      return apply("i,j->ij", {{3}});
    case 11:
      return apply("i,i->", {{i}});
    case 12:
      return apply("i,ij->j", {{i, 2}});
    case 13:
      return apply("i->", {});
    case 20:
      return apply("ij,kj->ik", {{2, j}});
    case 21:
      return apply("ij,ij->i", {{i, j}});
    case 22:
      return apply("ij,jk,kl->il", {{j, 3}, {3, 2}});
    case 23:
      return apply("ij->ji", {});
    case 30:
      return apply("bij,bjk->bik", {{i, k, 2}});
    case 31:
      return apply("bij,cj->bic", {{2, k}});
    case 32:
      return apply("...i,ki->...k", {{3, k}});
    case 33:
      return apply("bij,bik->jk", {{i, j, 2}});
    case 40:
      return apply("abij,abjk->abik", {{i, j, shape[3], 2}});
    case 41:
      return apply("ab...->...ba", {});
    case 42:
      return apply("abij,ai->bj", {{i, k}});
    default:
      return false;
  }
}

inline bool attention(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int rank = shape.rank();
  if (rank < 2 || shape[rank - 1] == 0) return false;
  const std::int64_t keys = 1 + c.below(4);
  const int q = c.current();
  const Shape k = shape.with_dim(rank - 2, keys);
  std::vector<int> arguments = {q, c.input(k), c.input(k.with_dim(rank - 1, 1 + c.below(3)))};
  const Shape products{shape[rank - 2], keys};
  if (c.one_in(3)) arguments.push_back(c.input(products));
  if (c.one_in(3) && arguments.size() == 3)
    arguments.push_back(c.step("less", {c.input(products), c.input({})}));
  c.step(op, arguments, {.lists = {{"causal", {c.below(2)}}}});
  return true;
}

// ---- losses and norms

inline bool labelled(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current(), last = shape.rank() - 1;
  if (shape.rank() == 0 || shape[last] == 0) return false;
  c.step(op, {c.integers(shape.without_axis(last), shape[last]), x});
  return true;
}

inline bool weighed(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() == 0 || shape[shape.rank() - 1] == 0) return false;
  const int x = c.current();
  c.step(op, {c.input(c.x().shape()), x});
  return true;
}

inline bool normalised(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() < 2 || c.x().num_elements() == 0) return false;
  const int x = c.current(), axis = c.axis(), place = axis < 0 ? axis + shape.rank() : axis;
  const bool rows = op == "layer_norm" || op == "rms_norm";
  const std::int64_t channels = shape[shape.rank() - 1];
  const Shape parameters =
      rows ? Shape(shape.dims().subspan(static_cast<std::size_t>(place))) : Shape{channels};
  std::vector<int> arguments = {x};
  if (op == "batch_norm_inference") {
    const int mean = c.input(parameters);
    arguments = {x, mean, c.positive(c.input(parameters))};
  }
  if (c.one_in(2)) {
    arguments.push_back(c.input(parameters));
    if (op != "rms_norm") arguments.push_back(c.input(parameters));
  }
  Extents groups = {1, channels};
  for (const std::int64_t g : {2, 3})
    if (channels % g == 0) groups.push_back(g);
  c.step(op, arguments,
         {.lists = {{"axis", {axis}},
                    {"part", {c.below(3)}},
                    {"groups", {groups[static_cast<std::size_t>(c.below(std::ssize(groups)))]}}}});
  return true;
}

}  // namespace lockstep::testing
