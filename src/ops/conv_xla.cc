// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;
using Three = std::array<std::int64_t, 3>;  // along depth, height and width

// One convolution instruction, by what may differ between the three: strides, padding and dilations.
struct Window {
  Three stride{1, 1, 1}, before{}, after{}, x_dilation{1, 1, 1}, w_dilation{1, 1, 1};
};

// The extents of a Convolution, by axis.
struct Extents {
  std::size_t axes;
  Three in, out, kernel, stride, dilation, before, after;

  explicit Extents(const Convolution& c)
      : axes(static_cast<std::size_t>(c.axes)),
        in{c.in_d, c.in_h, c.in_w},
        out{c.out_d, c.out_h, c.out_w},
        kernel{c.kernel_d, c.kernel_h, c.kernel_w},
        stride{c.stride_d, c.stride_h, c.stride_w},
        dilation{c.dilation_d, c.dilation_h, c.dilation_w},
        before{c.pad_front, c.pad_top, c.pad_left},
        after{c.pad_back, c.pad_bottom, c.pad_right} {}

  // Those of the axes that the tensors have.
  std::span<const std::int64_t> of(const Three& values) const {
    return std::span(values).subspan(3 - axes);
  }
  // [first.., <axes>, last..]
  Shape shape(std::vector<std::int64_t> first, const Three& size,
              std::initializer_list<std::int64_t> last) const {
    for (const std::int64_t extent : of(size)) first.push_back(extent);
    first.insert(first.end(), last);
    return Shape(std::span<const std::int64_t>(first));
  }
  // "[b, 0, 1, f]" of "b", "f": the axes between two.
  std::string between(const char* first, const char* last) const {
    std::string text = first;
    for (std::size_t axis = 0; axis < axes; ++axis) text += std::to_string(axis) + ", ";
    return '[' + text + last + ']';
  }
};

std::string padding_text(const Extents& e, const Window& window) {
  std::string text;
  for (std::size_t i = 3 - e.axes; i < 3; ++i)
    text += (text.empty() ? "[" : ", [") + std::to_string(window.before[i]) + ", " +
            std::to_string(window.after[i]) + "]";
  return "dense<[" + text + "]> : tensor<" + std::to_string(e.axes) + "x2xi64>";
}

// `layout` names the axes of x, w and the result, as StableHLO does.
Expr convolution(const Extents& e, const Expr& x, const Expr& w, const std::string& layout,
                 const Window& window, std::int64_t feature_groups, std::int64_t batch_groups,
                 const Shape& shape) {
  const xla::Node operands[] = {x.node(), w.node()};
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const auto array = [&](const Three& values) { return hlo::array(e.of(values)); };
  const hlo::Element element = hlo::is_half(x.element()) ? hlo::Element::f32 : x.element();
  return Expr(xla::current_trace()->emit(
      "stablehlo.convolution", operands,
      "batch_group_count = " + number(batch_groups) +
          " : i64, dimension_numbers = #stablehlo.conv<" + layout + ">, feature_group_count = " +
          number(feature_groups) + " : i64, lhs_dilation = " + array(window.x_dilation) +
          ", padding = " + padding_text(e, window) + ", precision_config = " + hlo::kPrecision +
          ", rhs_dilation = " + array(window.w_dilation) +
          ", window_strides = " + array(window.stride),
      hlo::Type{element, shape}));
}

// The extent of n elements at distance d.
std::int64_t dilated(std::int64_t n, std::int64_t d) { return (n - 1) * d + 1; }

// Images, kernels, images.
std::string plain(const Extents& e) {
  return e.between("b, ", "f") + "x" + e.between("", "i, o") + "->" + e.between("b, ", "f");
}

}  // namespace

Tensor convolve(const Convolution& c, const Tensor& x, const Tensor& w, const Tensor& bias,
                bool relu) {
  const Extents e(c);
  const char* const op = names_of(c).forward;
  Expr y = convolution(
      e, hlo::operand(op, x), hlo::operand(op, w), plain(e),
      {.stride = e.stride, .before = e.before, .after = e.after, .w_dilation = e.dilation},
      c.groups, 1, e.shape({c.batch}, e.out, {c.out_c}));
  if (bias.defined()) y = y + hlo::wide_operand(op, bias);
  if (relu) y = hlo::maximum(y, 0);
  return hlo::tensor(y, x.dtype());
}

// A convolution of dy, spread by the strides, with the kernels turned around and in and out
// exchanged within each group.
Tensor convolve_input_gradient(const Convolution& c, const Tensor& dy, const Tensor& w) {
  const Extents e(c);
  const char* const op = names_of(c).input_gradient;
  const std::int64_t in = c.in_c / c.groups, out = c.out_c / c.groups;
  const std::vector<std::int64_t> spatial = hlo::axes_up_to(static_cast<int>(c.axes));
  std::vector<std::int64_t> exchange = spatial;
  for (const std::int64_t axis : {2, 1, 0}) exchange.push_back(c.axes + axis);
  const Expr grouped =
      hlo::reshape(hlo::operand(op, w), e.shape({}, e.kernel, {in, c.groups, out}));
  const Expr kernels = hlo::reverse(
      hlo::reshape(hlo::transpose(grouped, exchange), e.shape({}, e.kernel, {out, c.in_c})),
      spatial);
  Window window{.x_dilation = e.stride, .w_dilation = e.dilation};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t span = dilated(e.kernel[i], e.dilation[i]);
    window.before[i] = span - e.before[i] - 1;
    window.after[i] = e.in[i] + span - 1 - dilated(e.out[i], e.stride[i]) - window.before[i];
  }
  const Expr dx = convolution(e, hlo::operand(op, dy), kernels, plain(e), window, c.groups, 1,
                              e.shape({c.batch}, e.in, {c.in_c}));
  return hlo::tensor(dx, dy.dtype());
}

// A convolution of x with dy as kernels, in which images and channels change places.
Tensor convolve_weight_gradient(const Convolution& c, const Tensor& x, const Tensor& dy) {
  const Extents e(c);
  const char* const op = names_of(c).weight_gradient;
  Window window{.stride = e.dilation, .before = e.before, .w_dilation = e.stride};
  for (std::size_t i = 0; i < 3; ++i)
    window.after[i] = dilated(e.out[i], e.stride[i]) - e.in[i] +
                      dilated(e.kernel[i], e.dilation[i]) - e.before[i] - 1;
  const Expr dw = convolution(
      e, hlo::operand(op, x), hlo::operand(op, dy),
      e.between("f, ", "b") + "x" + e.between("i, ", "o") + "->" + e.between("", "b, f"), window, 1,
      c.groups, e.shape({}, e.kernel, {c.in_c / c.groups, c.out_c}));
  return hlo::tensor(dw, x.dtype());
}

}  // namespace lockstep::traced
