// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

// One convolution instruction, by what may differ between the three: strides, padding and dilations
// along height and width.
struct Window {
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t top, bottom, left, right;
  std::int64_t x_dilation_h = 1, x_dilation_w = 1;
  std::int64_t w_dilation_h = 1, w_dilation_w = 1;
};

std::string pair(std::int64_t a, std::int64_t b) {
  const std::int64_t both[] = {a, b};
  return hlo::array(both);
}

// `axes` names those of x, w and the result, as StableHLO does.
Expr convolution(const Expr& x, const Expr& w, const char* axes, const Window& window,
                 std::int64_t feature_groups, std::int64_t batch_groups, const Shape& shape) {
  const xla::Node operands[] = {x.node(), w.node()};
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const hlo::Element element = hlo::is_half(x.element()) ? hlo::Element::f32 : x.element();
  return Expr(xla::current_trace()->emit(
      "stablehlo.convolution", operands,
      "batch_group_count = " + number(batch_groups) +
          " : i64, dimension_numbers = #stablehlo.conv<" + axes +
          ">, feature_group_count = " + number(feature_groups) + " : i64, lhs_dilation = " +
          pair(window.x_dilation_h, window.x_dilation_w) + ", padding = dense<[[" +
          number(window.top) + ", " + number(window.bottom) + "], [" + number(window.left) + ", " +
          number(window.right) + "]]> : tensor<2x2xi64>, precision_config = " + hlo::kPrecision +
          ", rhs_dilation = " + pair(window.w_dilation_h, window.w_dilation_w) +
          ", window_strides = " + pair(window.stride_h, window.stride_w),
      hlo::Type{element, shape}));
}

// The extent of n elements at distance d.
std::int64_t dilated(std::int64_t n, std::int64_t d) { return (n - 1) * d + 1; }

}  // namespace

Tensor convolve(const Convolution& c, const Tensor& x, const Tensor& w, const Tensor& bias,
                bool relu) {
  Expr y = convolution(hlo::operand("conv2d", x), hlo::operand("conv2d", w),
                       "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
                       {.stride_h = c.stride_h,
                        .stride_w = c.stride_w,
                        .top = c.pad_top,
                        .bottom = c.pad_bottom,
                        .left = c.pad_left,
                        .right = c.pad_right,
                        .w_dilation_h = c.dilation_h,
                        .w_dilation_w = c.dilation_w},
                       c.groups, 1, {c.batch, c.out_h, c.out_w, c.out_c});
  if (bias.defined()) y = y + hlo::wide_operand("conv2d", bias);
  if (relu) y = hlo::maximum(y, 0);
  return hlo::tensor(y, x.dtype());
}

// A convolution of dy, spread by the strides, with the kernels turned around and in and out
// exchanged within each group.
Tensor convolve_input_gradient(const Convolution& c, const Tensor& dy, const Tensor& w) {
  const std::int64_t in = c.in_c / c.groups, out = c.out_c / c.groups;
  constexpr std::int64_t kExchange[] = {0, 1, 4, 3, 2}, kSpatial[] = {0, 1};
  const Expr grouped = hlo::reshape(hlo::operand("conv2d_input_gradient", w),
                                    {c.kernel_h, c.kernel_w, in, c.groups, out});
  const Expr kernels = hlo::reverse(
      hlo::reshape(hlo::transpose(grouped, kExchange), {c.kernel_h, c.kernel_w, out, c.in_c}),
      kSpatial);
  const std::int64_t span_h = dilated(c.kernel_h, c.dilation_h),
                     span_w = dilated(c.kernel_w, c.dilation_w);
  const std::int64_t top = span_h - c.pad_top - 1, left = span_w - c.pad_left - 1;
  const Expr dx = convolution(hlo::operand("conv2d_input_gradient", dy), kernels,
                              "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
                              {.top = top,
                               .bottom = c.in_h + span_h - 1 - dilated(c.out_h, c.stride_h) - top,
                               .left = left,
                               .right = c.in_w + span_w - 1 - dilated(c.out_w, c.stride_w) - left,
                               .x_dilation_h = c.stride_h,
                               .x_dilation_w = c.stride_w,
                               .w_dilation_h = c.dilation_h,
                               .w_dilation_w = c.dilation_w},
                              c.groups, 1, {c.batch, c.in_h, c.in_w, c.in_c});
  return hlo::tensor(dx, dy.dtype());
}

// A convolution of x with dy as kernels, in which images and channels change places.
Tensor convolve_weight_gradient(const Convolution& c, const Tensor& x, const Tensor& dy) {
  const Expr dw = convolution(hlo::operand("conv2d_weight_gradient", x),
                              hlo::operand("conv2d_weight_gradient", dy),
                              "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
                              {.stride_h = c.dilation_h,
                               .stride_w = c.dilation_w,
                               .top = c.pad_top,
                               .bottom = dilated(c.out_h, c.stride_h) - c.in_h +
                                         dilated(c.kernel_h, c.dilation_h) - c.pad_top - 1,
                               .left = c.pad_left,
                               .right = dilated(c.out_w, c.stride_w) - c.in_w +
                                        dilated(c.kernel_w, c.dilation_w) - c.pad_left - 1,
                               .w_dilation_h = c.stride_h,
                               .w_dilation_w = c.stride_w},
                              1, c.groups, {c.kernel_h, c.kernel_w, c.in_c / c.groups, c.out_c});
  return hlo::tensor(dw, x.dtype());
}

}  // namespace lockstep::traced
