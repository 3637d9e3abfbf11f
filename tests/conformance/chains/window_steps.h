// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/chains/value_steps.h"

// Steps of convolutions and poolings.
namespace lockstep::testing {

// ---- windows

template <class Size>
Size size_of(const Extents& extents) {
  if constexpr (std::is_same_v<Size, std::int64_t>)
    return extents[0];
  else if constexpr (std::is_same_v<Size, Size2d>)
    return {extents[0], extents[1]};
  else
    return {extents[0], extents[1], extents[2]};
}

enum PaddingKind : std::int64_t { kValid, kSame, kGiven };

inline Padding padding_of(const Attributes& a) {
  const Extents& p = a["pads"];
  if (a.one("padding") == kValid) return Padding::valid;
  if (a.one("padding") == kSame) return Padding::same;
  return p.size() == 2   ? Padding(p[0], p[1])
         : p.size() == 4 ? Padding(p[0], p[1], p[2], p[3])
                         : Padding(p[0], p[1], p[2], p[3], p[4], p[5]);
}

template <class Options>
Options windows(const Attributes& a) {
  Options options;
  options.strides = size_of<decltype(options.strides)>(a["strides"]);
  options.padding = padding_of(a);
  if constexpr (requires { options.window; }) {
    options.window = size_of<decltype(options.window)>(a["window"]);
  } else {
    options.dilations = size_of<decltype(options.dilations)>(a["dilations"]);
    options.groups = a.one("groups");
  }
  return options;
}

// Images [batch, .., channels] as the current value.
inline bool images(Chain& c, int axes) {
  const std::int64_t count = c.x().num_elements();
  if (count == 0) {
    Extents extents(static_cast<std::size_t>(axes) + 2, 3);
    extents[0] = 0;
    c.reshaped(Shape(std::span<const std::int64_t>(extents)));
    return true;
  }
  c.reshaped(c.factored(count, axes + 2));
  return true;
}

// Windows of `taps`, `dilations` apart, that fit into the current images; nothing where a window
// would lie in padding wholly.
inline Attributes some_windows(Chain& c, Extents& taps, bool pooling) {
  Extents strides, dilations, pads;
  const std::int64_t kind = c.below(3);
  const Shape shape = c.x().shape();
  for (int i = 1; i + 1 < shape.rank(); ++i) {
    std::int64_t tap = 1 + c.below(3), dilation = pooling ? 1 : 1 + c.below(2);
    if ((tap - 1) * dilation + 1 > shape[i]) tap = dilation = 1;
    const std::int64_t most = tap > 1 ? 1 : 0;
    pads.insert(pads.end(), {c.below(most + 1), c.below(most + 1)});
    taps.push_back(tap);
    dilations.push_back(dilation);
    strides.push_back(1 + c.below(3));
  }
  return {.lists = {{"strides", strides},
                    {"dilations", dilations},
                    {"window", taps},
                    {"padding", {kind}},
                    {"pads", kind == kGiven ? pads : Extents{}},
                    {"groups", {1}}}};
}

inline Shape kernel(const Extents& taps, std::int64_t in, std::int64_t out) {
  Extents extents = taps;
  extents.insert(extents.end(), {in, out});
  return Shape(std::span<const std::int64_t>(extents));
}

inline Extents dims_of(const Tensor& x) {
  return {x.shape().dims().begin(), x.shape().dims().end()};
}

inline Make convolved(int axes) {
  return [=](Chain& c, const std::string& op) {
    images(c, axes);
    Extents taps;
    Attributes a = some_windows(c, taps, false);
    const int x = c.current();
    const std::int64_t channels = dims_of(c.x()).back();
    std::int64_t groups = channels % 2 == 0 && c.one_in(2) ? 2 : 1;
    std::int64_t out = groups * (1 + c.below(2));
    int w = 0;
    if (op == "depthwise_conv2d") {
      out = 1 + c.below(2);
      w = c.input(kernel(taps, channels, out));
      out *= channels;
    } else if (op.ends_with("transpose")) {
      w = c.input(kernel(taps, out / groups, channels));
    } else {
      w = c.input(kernel(taps, channels / groups, out));
    }
    a.lists["groups"] = {groups};
    if (op.ends_with("_gradient")) {
      const int y = c.step(op.substr(0, op.find('_')), {x, w}, a);
      a.lists["shape"] = dims_of(c.at(op.ends_with("input_gradient") ? x : w));
      c.step(op, {y, op.ends_with("input_gradient") ? w : x}, a);
    } else {
      std::vector<int> arguments = {x, w};
      if (c.one_in(2)) arguments.push_back(c.input({out}));
      c.step(op, arguments, a);
    }
    return true;
  };
}

inline Make pooled(int axes) {
  return [=](Chain& c, const std::string& op) {
    images(c, axes);
    Extents taps;
    const Attributes a = some_windows(c, taps, true);
    const Tensor x = c.x();
    c.step(op, {c.current()}, a);
    return op.starts_with("avg") || distinct(x);
  };
}

inline bool pooled_wholly(Chain& c, const std::string& op) {
  if (c.x().num_elements() == 0 || !distinct(c.x())) return false;
  images(c, static_cast<int>(1 + c.below(3)));
  c.step(op, {c.current()}, {.lists = {{"keep_dims", {c.below(2)}}}});
  return true;
}

}  // namespace lockstep::testing
