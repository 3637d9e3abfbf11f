// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/conv.h>
#include <lockstep/ops/recorder.h>

#include <cstring>

#include "ops/bias_gradient.h"
#include "ops/convolution.h"
#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "ops/window_extent.h"

namespace lockstep {
namespace {

void check_channels(const char* op, const Shape& x, const Shape& w, std::int64_t groups,
                    SourceLocation at) {
  require(
      x.rank() == 4 && w.rank() == 4, at, op,
      "expected images [batch, height, width, channels] and kernels [height, width, in / groups, "
      "out], got ",
      x, " and ", w);
  require(x[1] > 0 && x[2] > 0 && x[3] > 0 && w[2] > 0 && w[3] > 0, at, op,
          "expected extents of at least 1 but for the batch, got images ", x, " and kernels ", w);
  require(groups >= 1 && x[3] % groups == 0 && w[3] % groups == 0, at, op,
          "expected groups that divide the channels of images ", x, " and kernels ", w, ", got ",
          groups);
  require(w[2] * groups == x[3], at, op, "expected kernels for ", x[3] / groups,
          " input channels per group, got images ", x, " and kernels ", w, " in ", groups,
          " groups");
}

// The convolution of images and kernels of these shapes, checked.
Convolution convolution_of(const char* op, const Shape& x, const Shape& w,
                           const Conv2dOptions& options, SourceLocation at) {
  check_channels(op, x, w, options.groups, at);
  const auto [height, width] =
      window_extents(op, x, {w[0], w[1]}, options.strides, options.dilations, options.padding, at);
  return {.batch = x[0],
          .in_h = height.in,
          .in_w = width.in,
          .in_c = x[3],
          .out_h = height.out,
          .out_w = width.out,
          .out_c = w[3],
          .kernel_h = height.window,
          .kernel_w = width.window,
          .stride_h = height.stride,
          .stride_w = width.stride,
          .dilation_h = height.dilation,
          .dilation_w = width.dilation,
          .pad_top = height.before,
          .pad_bottom = height.after,
          .pad_left = width.before,
          .pad_right = width.after,
          .groups = options.groups};
}

Shape result_shape(const char* op, const Convolution& c, SourceLocation at) {
  return Shape({c.batch, c.out_h, c.out_w, c.out_c}, at, op);
}

void check_pair(const char* op, const char* a_name, const Tensor& a, const char* b_name,
                const Tensor& b, SourceLocation at) {
  require_defined(op, a_name, a, at);
  require_defined(op, b_name, b, at);
  require_same_dtype(op, a, b, at);
  require_dtype(is_floating(a.dtype()), op, a, "a floating dtype", at);
}

void check_dy(const char* op, const Tensor& dy, const Convolution& conv, SourceLocation at) {
  const Shape expected = result_shape(op, conv, at);
  require(dy.shape() == expected, at, op, "expected dy of the convolution's shape ", expected,
          ", got ", dy.shape());
}

Conv2dOptions linear(Conv2dOptions options) {
  options.activation = Activation::none;
  return options;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
              SourceLocation at) {
  constexpr const char* kOp = "conv2d";
  check_pair(kOp, "x", x, "w", w, at);
  const Convolution conv = convolution_of(kOp, x.shape(), w.shape(), options, at);
  if (bias.defined()) {
    require_same_dtype(kOp, w, bias, at);
    require(bias.shape() == Shape{conv.out_c}, at, kOp, "expected a bias of shape [", conv.out_c,
            "] for kernels ", w.shape(), ", got ", bias.shape());
  }
  const Device device = common_device(kOp, {&x, &w, &bias}, at);
  const bool relu = options.activation == Activation::relu;
  Tensor y;
  if (traced::on(device)) {
    y = traced::convolve(conv, x, w, bias, relu);
  } else {
    y = make_result(device, x.dtype(), result_shape(kOp, conv, at));
    if (conv.batch > 0)
      launch(
          kOp, device, writes(y), reads(x, w, bias),
          [conv, relu](Tensor& to, const Tensor& from, const Tensor& kernels, const Tensor& added) {
            cpu::convolve(conv, to.dtype(), to.device(), from.raw_data(), kernels.raw_data(),
                          added.defined() ? added.raw_data() : nullptr, relu, write<void>(to));
          },
          [conv, relu](Tensor& to, const Tensor& from, const Tensor& kernels, const Tensor& added) {
            cuda::convolve(conv, to.dtype(), from.raw_data(), kernels.raw_data(),
                           added.defined() ? added.raw_data() : nullptr, relu, write<void>(to),
                           to.device());
          });
  }
  record(kOp, {&x, &w, &bias}, y,
         [x, w, relu, options = linear(options), y = relu ? y : Tensor()](const Tensor& dy,
                                                                          GradientSink& sink) {
           const Tensor dz = put_bias_gradient(dy, y, relu, 2, sink);
           if (sink.wants(1))
             sink.put(1, [&] { return conv2d_weight_gradient(dz, x, w.shape(), options); });
           if (sink.wants(0))
             sink.put(0, [&] { return conv2d_input_gradient(dz, w, x.shape(), options); });
         });
  return relu ? y : activate(y, options.activation, at);
}

Tensor conv2d_input_gradient(const Tensor& dy, const Tensor& w, const Shape& x_shape,
                             const Conv2dOptions& options, SourceLocation at) {
  constexpr const char* kOp = "conv2d_input_gradient";
  check_pair(kOp, "dy", dy, "w", w, at);
  const Convolution conv = convolution_of(kOp, x_shape, w.shape(), options, at);
  check_dy(kOp, dy, conv, at);
  const Device device = common_device(kOp, {&dy, &w}, at);
  Tensor dx;
  if (traced::on(device)) {
    dx = traced::convolve_input_gradient(conv, dy, w);
  } else {
    dx = make_result(device, dy.dtype(), x_shape);
    if (conv.batch > 0)
      launch(
          kOp, device, writes(dx), reads(dy, w),
          [conv](Tensor& to, const Tensor& from, const Tensor& kernels) {
            cpu::convolve_input_gradient(conv, to.dtype(), to.device(), from.raw_data(),
                                         kernels.raw_data(), write<void>(to));
          },
          [conv](Tensor& to, const Tensor& from, const Tensor& kernels) {
            cuda::convolve_input_gradient(conv, to.dtype(), from.raw_data(), kernels.raw_data(),
                                          write<void>(to), to.device());
          });
  }
  record(kOp, {&dy, &w}, dx,
         [dy, w, options = linear(options)](const Tensor& d, GradientSink& sink) {
           if (sink.wants(1))
             sink.put(1, [&] { return conv2d_weight_gradient(dy, d, w.shape(), options); });
           if (sink.wants(0)) sink.put(0, [&] { return conv2d(d, w, Tensor(), options); });
         });
  return dx;
}

Tensor conv2d_weight_gradient(const Tensor& dy, const Tensor& x, const Shape& w_shape,
                              const Conv2dOptions& options, SourceLocation at) {
  constexpr const char* kOp = "conv2d_weight_gradient";
  check_pair(kOp, "dy", dy, "x", x, at);
  const Convolution conv = convolution_of(kOp, x.shape(), w_shape, options, at);
  check_dy(kOp, dy, conv, at);
  const Device device = common_device(kOp, {&dy, &x}, at);
  Tensor dw;
  if (traced::on(device)) {
    dw = traced::convolve_weight_gradient(conv, x, dy);
  } else {
    dw = make_result(device, dy.dtype(), w_shape);
    launch(
        kOp, device, writes(dw), reads(dy, x),
        [conv](Tensor& to, const Tensor& from, const Tensor& images) {
          if (conv.batch > 0)
            cpu::convolve_weight_gradient(conv, to.dtype(), to.device(), images.raw_data(),
                                          from.raw_data(), write<void>(to));
          else
            std::memset(write<void>(to), 0, to.bytes());
        },
        [conv](Tensor& to, const Tensor& from, const Tensor& images) {
          cuda::convolve_weight_gradient(conv, to.dtype(), images.raw_data(), from.raw_data(),
                                         write<void>(to), to.device());
        });
  }
  record(kOp, {&dy, &x}, dw,
         [dy, x, options = linear(options)](const Tensor& d, GradientSink& sink) {
           if (sink.wants(1))
             sink.put(1, [&] { return conv2d_input_gradient(dy, d, x.shape(), options); });
           if (sink.wants(0)) sink.put(0, [&] { return conv2d(x, d, Tensor(), options); });
         });
  return dw;
}

}  // namespace lockstep
