// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/chains/value_steps.h"

// Steps of ops that move elements.
namespace lockstep::testing {

// ---- shapes

inline bool shaped(Chain& c, const std::string&) {
  const std::int64_t count = c.x().num_elements();
  c.reshaped(c.factored(count, static_cast<int>(count == 1 ? c.below(4) : 1 + c.below(4))));
  return true;
}

inline bool new_axis(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, {.lists = {{"axis", {c.below(c.x().shape().rank() + 1)}}}});
  return true;
}

inline bool squeezed(Chain& c, const std::string& op) {
  c.step("expand_dims", {c.current()}, {.lists = {{"axis", {0}}}});
  c.step(op, {c.current()}, {.lists = {{"axes", c.one_in(2) ? Extents{0} : Extents{}}}});
  return true;
}

inline bool permuted(Chain& c, const std::string& op) {
  Extents order;
  for (int i = 0; i < c.x().shape().rank(); ++i) order.insert(order.begin() + c.below(i + 1), i);
  c.step(op, {c.current()}, {.lists = {{"axes", order}}});
  return true;
}

inline bool spread(Chain& c, const std::string& op) {
  Extents extents(c.x().shape().dims().begin(), c.x().shape().dims().end());
  for (std::int64_t& extent : extents)
    if (extent == 1) extent = 1 + c.below(3);
  if (c.one_in(2)) extents.insert(extents.begin(), 1 + c.below(3));
  c.step(op, {c.current()}, {.lists = {{"shape", extents}}});
  return true;
}

inline bool joined(Chain& c, const std::string& op) {
  if (c.x().shape().rank() == 0 && op == "concat") return false;
  const int axis = op == "concat" ? c.axis() : static_cast<int>(c.below(c.x().shape().rank() + 1));
  Shape other = c.x().shape();
  if (op == "concat") {
    const int place = axis < 0 ? axis + other.rank() : axis;
    other = other.with_dim(place, c.below(4));
  }
  std::vector<int> parts = {c.current(), c.input(other)};
  if (c.one_in(2)) std::swap(parts[0], parts[1]);
  if (c.one_in(3)) parts.push_back(c.current());
  c.step(op, parts, {.lists = {{"axis", {axis}}}});
  return true;
}

inline bool one_of_parts(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() == 0) return false;
  const int axis = c.axis();
  const std::int64_t extent = shape[axis < 0 ? axis + shape.rank() : axis];
  if (extent == 0) return false;
  const std::int64_t first = c.below(extent + 1);
  const std::int64_t part = op == "split" ? c.below(2) : c.below(extent);
  c.step(op, {c.current()},
         {.lists = {{"axis", {axis}}, {"part", {part}}, {"extents", {first, extent - first}}}});
  return true;
}

inline bool box(Chain& c, const std::string& op) {
  Extents begin, extents;
  for (const std::int64_t extent : c.x().shape().dims()) {
    begin.push_back(c.below(extent + 1));
    extents.push_back(c.one_in(3) ? -1 : c.below(extent - begin.back() + 1));
  }
  c.step(op, {c.current()}, {.lists = {{"begin", begin}, {"extents", extents}}});
  return true;
}

inline constexpr std::int64_t kAbsent = 99;

inline Attributes ranges_of(Chain& c, const Shape& shape) {
  Extents begin, end, stride;
  for (std::int64_t i = c.below(shape.rank() + 1); i > 0; --i) {
    const std::int64_t extent = shape[static_cast<int>(begin.size())];
    const auto place = [&] { return c.one_in(2) ? kAbsent : c.below(2 * extent + 4) - extent - 2; };
    begin.push_back(place());
    end.push_back(place());
    stride.push_back(c.one_of<std::int64_t>({1, 1, 2, 3, -1, -1, -2}));
  }
  return {.lists = {{"begin", begin}, {"end", end}, {"stride", stride}}};
}

inline std::vector<SliceRange> ranges(const Attributes& a) {
  std::vector<SliceRange> result;
  for (std::size_t i = 0; i < a["stride"].size(); ++i) {
    result.push_back({.stride = a["stride"][i]});
    if (a["begin"][i] != kAbsent) result.back().begin = a["begin"][i];
    if (a["end"][i] != kAbsent) result.back().end = a["end"][i];
  }
  return result;
}

inline bool strided(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, ranges_of(c, c.x().shape()));
  return true;
}

inline bool unstrided(Chain& c, const std::string& op) {
  const Extents extents(c.x().shape().dims().begin(), c.x().shape().dims().end());
  Attributes a = ranges_of(c, c.x().shape());
  c.step("strided_slice", {c.current()}, a);
  a.lists["shape"] = extents;
  c.step(op, {c.current()}, a);
  return true;
}

inline bool reversed(Chain& c, const std::string& op) {
  c.step(op, {c.current()}, {.lists = {{"axes", c.some_axes()}}});
  return true;
}

inline bool rolled(Chain& c, const std::string& op) {
  const Extents axes = c.some_axes();
  Extents shifts(axes.size());
  for (std::int64_t& shift : shifts) shift = c.below(13) - 6;
  c.step(op, {c.current()}, {.lists = {{"axes", axes}, {"shifts", shifts}}});
  return true;
}

inline bool repeated(Chain& c, const std::string& op) {
  Extents multiples(static_cast<std::size_t>(c.x().shape().rank()));
  for (std::int64_t& multiple : multiples) multiple = c.one_of<std::int64_t>({1, 1, 2, 3});
  c.step(op, {c.current()}, {.lists = {{"multiples", multiples}}});
  return true;
}

inline bool padded(Chain& c, const std::string& op) {
  const std::int64_t mode = c.below(3);  // constant, reflect, symmetric
  Extents before, after;
  for (const std::int64_t extent : c.x().shape().dims()) {
    const std::int64_t most =
        mode == 0 ? 2 : std::min<std::int64_t>(2, std::max<std::int64_t>(0, extent - (mode == 1)));
    before.push_back(c.below(most + 1));
    after.push_back(c.below(most + 1));
  }
  c.step(
      op, {c.current()},
      {.lists = {{"before", before}, {"after", after}, {"mode", {mode}}, {"value", {c.below(3)}}}});
  return true;
}

// ---- places

inline bool looked_up(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() == 0) return false;
  const int x = c.current(), axis = op == "gather" ? c.axis() : 0;
  const std::int64_t extent = shape[axis < 0 ? axis + shape.rank() : axis];
  if (extent == 0) return false;
  const int indices = c.integers(c.one_of({Shape{}, Shape{3}, Shape{2, 2}, Shape{0}}), extent);
  c.step(op, {x, indices}, {.lists = {{"axis", {axis}}}});
  return true;
}

// Coordinates of x, of one axis or two.
inline int coordinates(Chain& c, const Shape& of, std::int64_t depth) {
  return c.integers({3, depth}, depth == 2 ? std::min(of[0], of[1]) : of[0]);
}

inline bool coordinates_read(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0 || c.x().num_elements() == 0) return false;
  c.step(op, {x, coordinates(c, shape, shape.rank() > 1 ? 1 + c.below(2) : 1)});
  return true;
}

inline bool read_along(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0) return false;
  const int axis = c.axis(), place = axis < 0 ? axis + shape.rank() : axis;
  if (shape[place] == 0) return false;
  const int indices = c.integers(shape.with_dim(place, c.below(4)), shape[place]);
  c.step(op, {x, indices}, {.lists = {{"axis", {axis}}}});
  return true;
}

// Times the rows of the identity that the largest elements name.
inline bool marked(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() == 0 || c.x().num_elements() == 0 || !distinct(c.x())) return false;
  const int x = c.current();
  const int largest = c.step("argmax", {x}, {.lists = {{"axis", {-1}}}});
  c.step("mul", {x, c.step(op, {largest}, {.lists = {{"depth", {shape[shape.rank() - 1]}}}})});
  return true;
}

inline bool scattered(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0) return false;
  const int axis = static_cast<int>(c.below(shape.rank()));
  const std::int64_t rows = 1 + c.below(5);
  c.step(op, {c.integers({shape[axis]}, rows), x}, {.lists = {{"axis", {axis}}, {"rows", {rows}}}});
  return true;
}

inline bool scattered_nd(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0) return false;
  Extents result = {1 + c.below(4)};
  result.insert(result.end(), shape.dims().begin() + 1, shape.dims().end());
  c.step(op, {c.integers({shape[0], 1}, result[0]), x}, {.lists = {{"shape", result}}});
  return true;
}

inline bool added_at(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0 || c.x().num_elements() == 0) return false;
  const int updates = c.input(shape.with_dim(0, 3));
  c.step(op, {x, coordinates(c, shape, 1), updates});
  return true;
}

inline bool segments(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  const int x = c.current();
  if (shape.rank() == 0) return false;
  if (op == "unsorted_segment_sum") {
    c.step(op, {x, c.integers({shape[0]}, 4)}, {.lists = {{"segments", {4}}}});
    return true;
  }
  Extents ids;
  for (std::int64_t i = 0; i < shape[0]; ++i)
    ids.push_back(i == 0 ? c.below(2) : ids.back() + c.below(3));
  const int segments =
      c.step("integers", {}, {.lists = {{"values", ids}, {"shape", {shape[0]}}, {"bits", {64}}}});
  c.step(op, {x, segments});
  return true;
}

inline bool sorted(Chain& c, const std::string& op) {
  const int x = c.current();
  if (c.x().shape().rank() == 0 || !distinct(c.x())) return false;
  const std::int64_t axis = c.axis();
  c.step(op, {x}, {.lists = {{"axis", {axis}}, {"descending", {c.below(2)}}}});
  if (op == "argsort") c.step("take_along_axis", {x, c.current()}, {.lists = {{"axis", {axis}}}});
  return true;
}

inline bool largest(Chain& c, const std::string& op) {
  const Shape shape = c.x().shape();
  if (shape.rank() == 0 || !distinct(c.x())) return false;
  c.step(op, {c.current()}, {.lists = {{"k", {c.below(shape[shape.rank() - 1] + 1)}}}});
  return true;
}

}  // namespace lockstep::testing
