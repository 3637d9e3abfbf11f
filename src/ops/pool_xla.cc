// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

Shape x_shape(const Pool& p) { return {p.batch, p.in_h, p.in_w, p.channels}; }
Shape y_shape(const Pool& p) { return {p.batch, p.out_h, p.out_w, p.channels}; }

std::int64_t pad_after(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                       std::int64_t before) {
  return std::max<std::int64_t>(0, (out - 1) * stride + window - in - before);
}

std::string four(std::int64_t height, std::int64_t width) {
  const std::int64_t all[] = {1, height, width, 1};
  return hlo::array(all);
}

std::string padding_text(std::int64_t top, std::int64_t bottom, std::int64_t left,
                         std::int64_t right) {
  const auto row = [](std::int64_t before, std::int64_t after) {
    return "[" + std::to_string(before) + ", " + std::to_string(after) + "]";
  };
  return "dense<[[0, 0], " + row(top, bottom) + ", " + row(left, right) +
         ", [0, 0]]> : tensor<4x2xi64>";
}

// Windows and padding of a pooling, as attributes.
std::string windows(const Pool& p) {
  return "padding = " +
         padding_text(p.pad_top, pad_after(p.in_h, p.out_h, p.window_h, p.stride_h, p.pad_top),
                      p.pad_left, pad_after(p.in_w, p.out_w, p.window_w, p.stride_w, p.pad_left)) +
         ", window_dimensions = " + four(p.window_h, p.window_w) +
         ", window_strides = " + four(p.stride_h, p.stride_w);
}

Expr scalar(double value, const Expr& like) {
  return hlo::constant(value, {like.element(), Shape{}});
}

Expr reduce_window(std::string_view instruction, const Expr& x, double initial,
                   const std::string& attributes, const Shape& shape) {
  const xla::Node operands[] = {x.node(), scalar(initial, x).node()};
  return Expr(xla::current_trace()->emit("stablehlo.reduce_window", operands, attributes,
                                         hlo::Type{x.element(), shape},
                                         hlo::reducer(instruction, x.element())));
}

constexpr double kLeast = -std::numeric_limits<double>::infinity();

// How many pixels each window has inside the image.
Expr taps_inside(const Pool& p, hlo::Element element) {
  Pool one = p;
  one.batch = one.channels = 1;
  const Expr ones = hlo::constant(1, {element, x_shape(one)});
  return reduce_window("add", ones, 0, windows(one), y_shape(one));
}

// x with the padding around it, as far as windows reach.
Expr padded(const Pool& p, const Expr& x, double fill) {
  const std::int64_t before[] = {0, p.pad_top, p.pad_left, 0};
  const std::int64_t after[] = {0, pad_after(p.in_h, p.out_h, p.window_h, p.stride_h, p.pad_top),
                                pad_after(p.in_w, p.out_w, p.window_w, p.stride_w, p.pad_left), 0};
  const std::int64_t between[] = {0, 0, 0, 0};
  return hlo::pad(x, before, after, between, fill);
}

// Of padded images, the pixel that is tap (i, j) of each window.
Expr at_tap(const Pool& p, const Expr& images, std::int64_t i, std::int64_t j) {
  const std::int64_t begin[] = {0, i, j, 0};
  const std::int64_t strides[] = {1, p.stride_h, p.stride_w, 1};
  return hlo::slice(images, begin, y_shape(p).dims(), strides);
}

// The reverse: images that hold y at tap (i, j) of each window, zeros elsewhere.
Expr from_tap(const Pool& p, const Expr& y, std::int64_t i, std::int64_t j) {
  const std::int64_t top = i - p.pad_top, left = j - p.pad_left;
  const std::int64_t before[] = {0, top, left, 0};
  const std::int64_t after[] = {0, p.in_h - ((p.out_h - 1) * p.stride_h + 1) - top,
                                p.in_w - ((p.out_w - 1) * p.stride_w + 1) - left, 0};
  const std::int64_t between[] = {0, p.stride_h - 1, p.stride_w - 1, 0};
  return hlo::pad(y, before, after, between);
}

template <class F>
void for_each_tap(const Pool& p, F&& f) {
  for (std::int64_t i = 0; i < p.window_h; ++i)
    for (std::int64_t j = 0; j < p.window_w; ++j) f(i, j, static_cast<double>(i * p.window_w + j));
}

// As the loop in pool_isa.cc: the first of equals, NaN before all.
Expr largest_taps(const Pool& p, const Expr& x, hlo::Element element) {
  const Expr images = padded(p, x, kLeast);
  Expr best = at_tap(p, images, 0, 0);
  Expr taps = hlo::constant(0, {element, y_shape(p)});
  for_each_tap(p, [&](std::int64_t i, std::int64_t j, double number) {
    if (number == 0) return;
    const Expr next = at_tap(p, images, i, j);
    const Expr taken = (next > best) | hlo::not_equal(next, next);
    best = hlo::select(taken, next, best);
    taps = hlo::select(taken, hlo::constant(number, {element, Shape{}}), taps);
  });
  return taps;
}

}  // namespace

Maxima max_pool(const Pool& p, const Tensor& x, bool keep_taps, DType tap_type) {
  const Expr value = hlo::wide_operand("max_pool2d", x);
  const Expr y = reduce_window("maximum", value, kLeast, windows(p), y_shape(p));
  Maxima result{hlo::tensor(y, x.dtype()), {}};
  if (keep_taps)
    result.taps = hlo::tensor(largest_taps(p, value, xla::element_of(tap_type)), tap_type);
  return result;
}

Tensor pool_scatter(const Pool& p, const Tensor& dy, const Tensor& taps) {
  const Expr source = hlo::wide_operand("max_pool2d", dy),
             numbers = hlo::operand("max_pool2d", taps);
  Expr dx = hlo::constant(0, {source.element(), x_shape(p)});
  for_each_tap(p, [&](std::int64_t i, std::int64_t j, double number) {
    const Expr own = hlo::select(hlo::equal(numbers, number), source, scalar(0, source));
    dx = dx + from_tap(p, own, i, j);
  });
  return hlo::tensor(dx, dy.dtype());
}

Tensor pool_gather(const Pool& p, const Tensor& x, const Tensor& taps) {
  const Expr images = padded(p, hlo::wide_operand("max_pool2d", x), 0);
  const Expr numbers = hlo::operand("max_pool2d", taps);
  Expr y = hlo::constant(0, {images.element(), y_shape(p)});
  for_each_tap(p, [&](std::int64_t i, std::int64_t j, double number) {
    y = hlo::select(hlo::equal(numbers, number), at_tap(p, images, i, j), y);
  });
  return hlo::tensor(y, x.dtype());
}

Tensor mean_pool(const Pool& p, const Tensor& x) {
  const Expr value = hlo::wide_operand("avg_pool2d", x);
  const Expr sum = reduce_window("add", value, 0, windows(p), y_shape(p));
  return hlo::tensor(sum / taps_inside(p, value.element()), x.dtype());
}

// Each pixel sums over the windows that it is in: dy, spread by the strides, under windows that step
// by one.
Tensor mean_pool_gradient(const Pool& p, const Tensor& dy) {
  const Expr value = hlo::wide_operand("avg_pool2d", dy);
  const Expr each = value / taps_inside(p, value.element());
  const std::int64_t top = p.window_h - 1 - p.pad_top, left = p.window_w - 1 - p.pad_left;
  const std::int64_t before[] = {0, top, left, 0};
  const std::int64_t after[] = {0, p.in_h + p.window_h - 1 - ((p.out_h - 1) * p.stride_h + 1) - top,
                                p.in_w + p.window_w - 1 - ((p.out_w - 1) * p.stride_w + 1) - left,
                                0};
  const std::int64_t between[] = {0, p.stride_h - 1, p.stride_w - 1, 0};
  const Expr spread = hlo::pad(each, before, after, between);
  const Expr dx = reduce_window("add", spread, 0,
                                "padding = " + padding_text(0, 0, 0, 0) +
                                    ", window_dimensions = " + four(p.window_h, p.window_w) +
                                    ", window_strides = " + four(1, 1),
                                x_shape(p));
  return hlo::tensor(dx, dy.dtype());
}

}  // namespace lockstep::traced
