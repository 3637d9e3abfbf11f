// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/conv.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>

#include <cstring>

#include "ops/bias_gradient.h"
#include "ops/convolution.h"
#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "ops/window_extent.h"

namespace lockstep {
namespace {

// The options of a convolution of any number of axes.
struct ConvOptions {
  int axes;
  Size3d strides, dilations;
  Padding padding;
  std::int64_t groups;

  WindowSteps steps(const Size3d& window) const { return {axes, window, strides, dilations}; }
};

template <class Options>
ConvOptions options_of(int axes, const Options& o) {
  return {axes, as_3d(o.strides), as_3d(o.dilations), o.padding, o.groups};
}

// ---- shapes

const char* names_of_axes(int axes) {
  constexpr const char* kNames[] = {"width", "height, width", "depth, height, width"};
  return kNames[axes - 1];
}

// The extents of kernels [<axes>, in / groups, out].
Size3d window_of(const Shape& w, int axes) {
  return {axes > 2 ? w[axes - 3] : 1, axes > 1 ? w[axes - 2] : 1, w[axes - 1]};
}

void check_images(const char* op, const Shape& x, const Shape& w, const ConvOptions& o,
                  SourceLocation at) {
  require(x.rank() == o.axes + 2 && w.rank() == o.axes + 2, at, op, "expected images [batch, ",
          names_of_axes(o.axes), ", channels] and kernels [", names_of_axes(o.axes),
          ", in / groups, out], got ", x, " and ", w);
  bool positive = true;
  for (int axis = 0; axis < o.axes + 2; ++axis)
    positive = positive && w[axis] > 0 && (axis == 0 || x[axis] > 0);
  require(positive, at, op, "expected extents of at least 1 but for the batch, got images ", x,
          " and kernels ", w);
}

void check_groups(const char* op, const Shape& x, const Shape& w, const ConvOptions& o,
                  SourceLocation at) {
  const std::int64_t out = w[o.axes + 1];
  require(o.groups >= 1 && x[o.axes + 1] % o.groups == 0 && out % o.groups == 0, at, op,
          "expected groups that divide the channels of images ", x, " and kernels ", w, ", got ",
          o.groups);
}

Convolution convolution_of(const WindowExtents& e, const ConvOptions& o, std::int64_t batch,
                           std::int64_t in, std::int64_t out) {
  return {.batch = batch,
          .in_h = e.height.in,
          .in_w = e.width.in,
          .in_c = in,
          .out_h = e.height.out,
          .out_w = e.width.out,
          .out_c = out,
          .kernel_h = e.height.window,
          .kernel_w = e.width.window,
          .stride_h = e.height.stride,
          .stride_w = e.width.stride,
          .dilation_h = e.height.dilation,
          .dilation_w = e.width.dilation,
          .pad_top = e.height.before,
          .pad_bottom = e.height.after,
          .pad_left = e.width.before,
          .pad_right = e.width.after,
          .groups = o.groups,
          .axes = o.axes,
          .in_d = e.depth.in,
          .out_d = e.depth.out,
          .kernel_d = e.depth.window,
          .stride_d = e.depth.stride,
          .dilation_d = e.depth.dilation,
          .pad_front = e.depth.before,
          .pad_back = e.depth.after};
}

// The convolution of images and kernels of these shapes, checked.
Convolution checked(const char* op, const Shape& x, const Shape& w, const ConvOptions& o,
                    SourceLocation at) {
  check_images(op, x, w, o, at);
  check_groups(op, x, w, o, at);
  const std::int64_t in = x[o.axes + 1];
  require(w[o.axes] * o.groups == in, at, op, "expected kernels for ", in / o.groups,
          " input channels per group, got images ", x, " and kernels ", w, " in ", o.groups,
          " groups");
  const WindowExtents extents = window_extents(op, x, o.steps(window_of(w, o.axes)), o.padding, at);
  return convolution_of(extents, o, x[0], in, w[o.axes + 1]);
}

// The same of which x is the result.
Convolution checked_transpose(const char* op, const Shape& x, const Shape& w, const ConvOptions& o,
                              const Size3d& size, SourceLocation at) {
  check_images(op, x, w, o, at);
  check_groups(op, x, w, o, at);
  require(w[o.axes + 1] == x[o.axes + 1], at, op, "expected kernels [", names_of_axes(o.axes),
          ", out / groups, in] for ", x[o.axes + 1], " input channels, got images ", x,
          " and kernels ", w);
  const WindowExtents extents =
      image_extents(op, x, o.steps(window_of(w, o.axes)), o.padding, size, at);
  return convolution_of(extents, o, x[0], w[o.axes] * o.groups, x[o.axes + 1]);
}

int axes_of(const Convolution& c) { return static_cast<int>(c.axes); }
Shape x_shape_of(const char* op, const Convolution& c, SourceLocation at = {}) {
  return image_shape(op, axes_of(c), c.batch, {c.in_d, c.in_h, c.in_w}, c.in_c, at);
}
Shape y_shape_of(const char* op, const Convolution& c, SourceLocation at = {}) {
  return image_shape(op, axes_of(c), c.batch, {c.out_d, c.out_h, c.out_w}, c.out_c, at);
}

void check_pair(const char* op, const char* a_name, const Tensor& a, const char* b_name,
                const Tensor& b, SourceLocation at) {
  require_defined(op, a_name, a, at);
  require_defined(op, b_name, b, at);
  require_same_dtype(op, a, b, at);
  require_dtype(is_floating(a.dtype()), op, a, "a floating dtype", at);
}

void check_bias(const char* op, const Tensor& w, const Tensor& bias, std::int64_t channels,
                SourceLocation at) {
  if (!bias.defined()) return;
  require_same_dtype(op, w, bias, at);
  require(bias.shape() == Shape{channels}, at, op, "expected a bias of shape [", channels,
          "] for kernels ", w.shape(), ", got ", bias.shape());
}

void check_dy(const char* op, const Tensor& dy, const Convolution& conv, SourceLocation at) {
  const Shape expected = y_shape_of(op, conv, at);
  require(dy.shape() == expected, at, op, "expected dy of the convolution's shape ", expected,
          ", got ", dy.shape());
}

// ---- the three ops, each of which is linear in both arguments and has the others as gradients

Tensor convolve(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& bias,
                Activation activation, SourceLocation at);
Tensor input_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                      SourceLocation at);
Tensor weight_gradient(const Convolution& conv, const Tensor& dy, const Tensor& x,
                       const Shape& w_shape, SourceLocation at);

const void* data_or_null(const Tensor& x) { return x.defined() ? x.raw_data() : nullptr; }

Tensor computed(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& bias,
                bool relu, SourceLocation at) {
  const char* const op = names_of(conv).forward;
  const Device device = common_device(op, {&x, &w, &bias}, at);
  if (traced::on(device)) return traced::convolve(conv, x, w, bias, relu);
  Tensor y = make_result(device, x.dtype(), y_shape_of(op, conv, at));
  if (conv.batch > 0)
    launch(
        op, device, writes(y), reads(x, w, bias),
        [conv, relu](Tensor& to, const Tensor& from, const Tensor& kernels, const Tensor& added) {
          cpu::convolve(conv, to.dtype(), to.device(), from.raw_data(), kernels.raw_data(),
                        data_or_null(added), relu, write<void>(to));
        },
        [conv, relu](Tensor& to, const Tensor& from, const Tensor& kernels, const Tensor& added) {
          cuda::convolve(conv, to.dtype(), from.raw_data(), kernels.raw_data(), data_or_null(added),
                         relu, write<void>(to), to.device());
        });
  return y;
}

Tensor convolve(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& bias,
                Activation activation, SourceLocation at) {
  const bool relu = activation == Activation::relu;
  const Tensor y = computed(conv, x, w, bias, relu, at);
  record(names_of(conv).forward, {&x, &w, &bias}, y,
         [x, w, relu, conv, y = relu ? y : Tensor()](const Tensor& dy, GradientSink& sink) {
           const Tensor dz = put_bias_gradient(dy, y, relu, 2, sink);
           if (sink.wants(1))
             sink.put(1, [&] { return weight_gradient(conv, dz, x, w.shape(), {}); });
           if (sink.wants(0)) sink.put(0, [&] { return input_gradient(conv, dz, w, {}); });
         });
  return relu ? y : activate(y, activation, at);
}

Tensor input_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                      SourceLocation at) {
  const char* const op = names_of(conv).input_gradient;
  const Device device = common_device(op, {&dy, &w}, at);
  Tensor dx;
  if (traced::on(device)) {
    dx = traced::convolve_input_gradient(conv, dy, w);
  } else {
    dx = make_result(device, dy.dtype(), x_shape_of(op, conv, at));
    if (conv.batch > 0)
      launch(
          op, device, writes(dx), reads(dy, w),
          [conv](Tensor& to, const Tensor& from, const Tensor& kernels) {
            cpu::convolve_input_gradient(conv, to.dtype(), to.device(), from.raw_data(),
                                         kernels.raw_data(), write<void>(to));
          },
          [conv](Tensor& to, const Tensor& from, const Tensor& kernels) {
            cuda::convolve_input_gradient(conv, to.dtype(), from.raw_data(), kernels.raw_data(),
                                          write<void>(to), to.device());
          });
  }
  record(op, {&dy, &w}, dx, [dy, w, conv](const Tensor& d, GradientSink& sink) {
    if (sink.wants(1)) sink.put(1, [&] { return weight_gradient(conv, dy, d, w.shape(), {}); });
    if (sink.wants(0))
      sink.put(0, [&] { return convolve(conv, d, w, Tensor(), Activation::none, {}); });
  });
  return dx;
}

Tensor weight_gradient(const Convolution& conv, const Tensor& dy, const Tensor& x,
                       const Shape& w_shape, SourceLocation at) {
  const char* const op = names_of(conv).weight_gradient;
  const Device device = common_device(op, {&dy, &x}, at);
  Tensor dw;
  if (traced::on(device)) {
    dw = traced::convolve_weight_gradient(conv, x, dy);
  } else {
    dw = make_result(device, dy.dtype(), w_shape);
    launch(
        op, device, writes(dw), reads(dy, x),
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
  record(op, {&dy, &x}, dw, [dy, x, conv](const Tensor& d, GradientSink& sink) {
    if (sink.wants(1)) sink.put(1, [&] { return input_gradient(conv, dy, d, {}); });
    if (sink.wants(0))
      sink.put(0, [&] { return convolve(conv, x, d, Tensor(), Activation::none, {}); });
  });
  return dw;
}

// ---- with checks

template <class Options>
Tensor convolution(const char* op, int axes, const Tensor& x, const Tensor& w, const Tensor& bias,
                   const Options& options, SourceLocation at) {
  check_pair(op, "x", x, "w", w, at);
  const Convolution conv = checked(op, x.shape(), w.shape(), options_of(axes, options), at);
  check_bias(op, w, bias, conv.out_c, at);
  return convolve(conv, x, w, bias, options.activation, at);
}

template <class Options>
Tensor checked_input_gradient(const char* op, int axes, const Tensor& dy, const Tensor& w,
                              const Shape& x_shape, const Options& options, SourceLocation at) {
  check_pair(op, "dy", dy, "w", w, at);
  const Convolution conv = checked(op, x_shape, w.shape(), options_of(axes, options), at);
  check_dy(op, dy, conv, at);
  return input_gradient(conv, dy, w, at);
}

template <class Options>
Tensor checked_weight_gradient(const char* op, int axes, const Tensor& dy, const Tensor& x,
                               const Shape& w_shape, const Options& options, SourceLocation at) {
  check_pair(op, "dy", dy, "x", x, at);
  const Convolution conv = checked(op, x.shape(), w_shape, options_of(axes, options), at);
  check_dy(op, dy, conv, at);
  return weight_gradient(conv, dy, x, w_shape, at);
}

template <class Options>
Tensor transposed(const char* op, int axes, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Options& options, SourceLocation at) {
  check_pair(op, "x", x, "w", w, at);
  const Convolution conv = checked_transpose(op, x.shape(), w.shape(), options_of(axes, options),
                                             as_3d(options.output_size), at);
  check_bias(op, w, bias, conv.in_c, at);
  common_device(op, {&x, &w, &bias}, at);
  const Tensor y = input_gradient(conv, x, w, at);
  return activate(bias.defined() ? y + bias : y, options.activation, at);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dOptions& options,
              SourceLocation at) {
  return convolution("conv1d", 1, x, w, bias, options, at);
}
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
              SourceLocation at) {
  return convolution("conv2d", 2, x, w, bias, options, at);
}
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv3dOptions& options,
              SourceLocation at) {
  return convolution("conv3d", 3, x, w, bias, options, at);
}

Tensor depthwise_conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Conv2dOptions& options, SourceLocation at) {
  constexpr const char* kOp = "depthwise_conv2d";
  check_pair(kOp, "x", x, "w", w, at);
  require(x.rank() == 4 && w.rank() == 4 && x.dim(3) == w.dim(2) && w.dim(2) > 0, at, kOp,
          "expected images [batch, height, width, in] and kernels [height, width, in, multiplier], "
          "got ",
          x.shape(), " and ", w.shape());
  common_device(kOp, {&x, &w, &bias}, at);
  Conv2dOptions grouped = options;
  grouped.groups = w.dim(2);
  const Tensor kernels = reshape(w, Shape{w.dim(0), w.dim(1), 1, w.dim(2) * w.dim(3)}, at);
  return convolution(kOp, 2, x, kernels, bias, grouped, at);
}

Tensor conv1d_input_gradient(const Tensor& dy, const Tensor& w, const Shape& x_shape,
                             const Conv1dOptions& options, SourceLocation at) {
  return checked_input_gradient("conv1d_input_gradient", 1, dy, w, x_shape, options, at);
}
Tensor conv2d_input_gradient(const Tensor& dy, const Tensor& w, const Shape& x_shape,
                             const Conv2dOptions& options, SourceLocation at) {
  return checked_input_gradient("conv2d_input_gradient", 2, dy, w, x_shape, options, at);
}
Tensor conv3d_input_gradient(const Tensor& dy, const Tensor& w, const Shape& x_shape,
                             const Conv3dOptions& options, SourceLocation at) {
  return checked_input_gradient("conv3d_input_gradient", 3, dy, w, x_shape, options, at);
}

Tensor conv1d_weight_gradient(const Tensor& dy, const Tensor& x, const Shape& w_shape,
                              const Conv1dOptions& options, SourceLocation at) {
  return checked_weight_gradient("conv1d_weight_gradient", 1, dy, x, w_shape, options, at);
}
Tensor conv2d_weight_gradient(const Tensor& dy, const Tensor& x, const Shape& w_shape,
                              const Conv2dOptions& options, SourceLocation at) {
  return checked_weight_gradient("conv2d_weight_gradient", 2, dy, x, w_shape, options, at);
}
Tensor conv3d_weight_gradient(const Tensor& dy, const Tensor& x, const Shape& w_shape,
                              const Conv3dOptions& options, SourceLocation at) {
  return checked_weight_gradient("conv3d_weight_gradient", 3, dy, x, w_shape, options, at);
}

Tensor conv1d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Conv1dTransposeOptions& options, SourceLocation at) {
  return transposed("conv1d_transpose", 1, x, w, bias, options, at);
}
Tensor conv2d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Conv2dTransposeOptions& options, SourceLocation at) {
  return transposed("conv2d_transpose", 2, x, w, bias, options, at);
}
Tensor conv3d_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Conv3dTransposeOptions& options, SourceLocation at) {
  return transposed("conv3d_transpose", 3, x, w, bias, options, at);
}

}  // namespace lockstep
