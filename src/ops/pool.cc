// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/pool.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

#include <optional>
#include <string>

#include "ops/composed.h"
#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/pool_kernels.h"
#include "ops/traced.h"
#include "ops/window_extent.h"

namespace lockstep {
namespace {

// A pooling over two axes of tensors of these shapes, which are seen as [batch, in_h, in_w, channels]
// and [batch, out_h, out_w, channels].
struct Pooling {
  const char* op;
  Shape x_shape, y_shape;
  Pool pool;

  // Taps are numbered in as few bytes as will do.
  DType tap_type() const { return pool.window_h * pool.window_w <= 256 ? DType::u8 : DType::i32; }
  Tensor seen_x(const Tensor& x) const {
    return x.with_shape({pool.batch, pool.in_h, pool.in_w, pool.channels});
  }
  Tensor seen_y(const Tensor& y) const {
    return y.with_shape({pool.batch, pool.out_h, pool.out_w, pool.channels});
  }
};

Pooling pooling_of(const char* op, const Shape& x, const Shape& y, std::int64_t batch,
                   std::int64_t channels, const WindowExtent& h, const WindowExtent& w) {
  return {.op = op,
          .x_shape = x,
          .y_shape = y,
          .pool = {.batch = batch,
                   .in_h = h.in,
                   .in_w = w.in,
                   .out_h = h.out,
                   .out_w = w.out,
                   .channels = channels,
                   .window_h = h.window,
                   .window_w = w.window,
                   .stride_h = h.stride,
                   .stride_w = w.stride,
                   .pad_top = h.before,
                   .pad_left = w.before}};
}

void check_padding(const char* op, const WindowExtents& e, int axes, const Shape& x,
                   SourceLocation at) {
  bool ok = true;
  std::string padding;
  for (const WindowExtent* axis : {&e.depth, &e.height, &e.width}) {
    ok = ok && axis->before < axis->window && axis->after < axis->window;
    if ((axis == &e.depth && axes < 3) || (axis == &e.height && axes < 2)) continue;
    padding += (padding.empty() ? "" : ", ") + std::to_string(axis->before) + ", " +
               std::to_string(axis->after);
  }
  require(ok, at, op, "expected less padding than the window of ",
          size_text({e.depth.window, e.height.window, e.width.window}, axes), ", got {", padding,
          "} for images ", x);
}

// How images x are pooled, checked: over height and width, then where there are three axes over the
// depth. Both maximum and mean come to the same so, first of equals and counts of pixels included.
struct Poolings {
  Pooling plane;
  std::optional<Pooling> depth;
};

template <class Options>
Poolings checked(const char* op, int axes, const Tensor& x, const Options& options,
                 SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
  constexpr const char* kAxes[] = {"width", "height, width", "depth, height, width"};
  const Shape& shape = x.shape();
  require(shape.rank() == axes + 2, at, op, "expected images [batch, ", kAxes[axes - 1],
          ", channels], got ", shape);
  for (int axis = 1; axis < shape.rank(); ++axis)
    require(shape[axis] > 0, at, op, "expected extents of at least 1 but for the batch, got ",
            shape);
  const WindowExtents e = window_extents(
      op, shape, {axes, as_3d(options.window), as_3d(options.strides), 1}, options.padding, at);
  check_padding(op, e, axes, shape, at);
  common_device(op, {&x}, at);
  const std::int64_t batch = shape[0], channels = shape[axes + 1];
  const Shape plane =
      image_shape(op, axes, batch, {e.depth.in, e.height.out, e.width.out}, channels, at);
  Poolings poolings{pooling_of(op, shape, plane, batch * e.depth.in, channels, e.height, e.width),
                    {}};
  if (axes == 3)
    poolings.depth =
        pooling_of(op, plane, plane.with_dim(1, e.depth.out), batch, channels, e.depth,
                   {.in = e.height.out * e.width.out, .out = e.height.out * e.width.out});
  return poolings;
}

// f(kernels of T, T{}), where T is what `dtype` is computed in.
template <class F>
void visit_kernel(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f(pool_kernels().f64, double{});
  else
    f(pool_kernels().f32, float{});
}
// f(kernels for the taps' type, Index{}).
template <class T, class F>
void visit_taps(const PoolKernel<T>& kernel, DType taps, F&& f) {
  if (taps == DType::u8)
    f(kernel.small, std::uint8_t{});
  else
    f(kernel.large, std::int32_t{});
}

// 16-bit tensors are computed in float.
Tensor in_float(const Tensor& x) {
  const RecorderScope unrecorded(nullptr);
  return widened(x);
}

// ---- max: the numbers of the taps make its gradient a scatter, and that one's a gather

struct Maxima {
  Tensor y, taps;
};

Maxima maxima(const Pooling& p, const Tensor& x, bool keep_taps) {
  const RecorderScope unrecorded(nullptr);
  if (traced::on(x.device())) {
    const auto [y, taps] = traced::max_pool(p.pool, p.seen_x(x), keep_taps, p.tap_type());
    return {y.with_shape(p.y_shape), taps};
  }
  if (is_half(x.dtype())) {
    const Maxima wide = maxima(p, in_float(x), keep_taps);
    return {cast(wide.y, x.dtype()), wide.taps};
  }
  const Device device = common_device(p.op, {&x}, {});
  Maxima result{make_result(device, x.dtype(), p.y_shape), {}};
  if (keep_taps) {
    const auto count = static_cast<std::size_t>(p.y_shape.num_elements());
    result.taps =
        Tensor(Buffer::allocate(device, count * size_of(p.tap_type())), p.tap_type(), p.y_shape);
  }
  launch(
      p.op, device, writes(result.y, result.taps), reads(x),
      [p](Tensor& y, Tensor& taps, const Tensor& from) {
        visit_kernel(from.dtype(), [&]<class T>(const PoolKernel<T>& kernel, T) {
          visit_taps(kernel, p.tap_type(), [&]<class Index>(const auto& max_kernel, Index) {
            max_kernel.max(p.pool, read<T>(from), write<T>(y),
                           taps.defined() ? write<Index>(taps) : nullptr);
          });
        });
      },
      [p](Tensor& y, Tensor& taps, const Tensor& from) {
        cuda::max_pool(p.pool, y.dtype(), p.tap_type(), from.raw_data(), write<void>(y),
                       taps.defined() ? write<void>(taps) : nullptr, y.device());
      });
  return result;
}

Tensor gather_cpu(const Pooling& p, const Tensor& x, const Tensor& taps) {
  const Tensor from = in_float(x);
  const Device device = common_device(p.op, {&x, &taps}, {});
  Tensor y = make_result(device, from.dtype(), p.y_shape);
  launch(
      p.op, device, writes(y), reads(from, taps),
      [p](Tensor& to, const Tensor& values, const Tensor& places) {
        visit_kernel(values.dtype(), [&]<class T>(const PoolKernel<T>& kernel, T) {
          visit_taps(kernel, places.dtype(), [&]<class Index>(const auto& max_kernel, Index) {
            max_kernel.gather(p.pool, read<T>(values), read<Index>(places), write<T>(to));
          });
        });
      },
      [p](Tensor& to, const Tensor& values, const Tensor& places) {
        cuda::pool_gather(p.pool, to.dtype(), places.dtype(), values.raw_data(), places.raw_data(),
                          write<void>(to), to.device());
      });
  return is_half(x.dtype()) ? cast(y, x.dtype()) : y;
}

Tensor scatter_cpu(const Pooling& p, const Tensor& dy, const Tensor& taps) {
  const Tensor from = in_float(dy);
  const Device device = common_device(p.op, {&dy, &taps}, {});
  Tensor dx = make_result(device, from.dtype(), p.x_shape);
  launch(
      p.op, device, writes(dx), reads(from, taps),
      [p](Tensor& to, const Tensor& values, const Tensor& places) {
        visit_kernel(values.dtype(), [&]<class T>(const PoolKernel<T>& kernel, T) {
          visit_taps(kernel, places.dtype(), [&]<class Index>(const auto& max_kernel, Index) {
            max_kernel.scatter(p.pool, read<T>(values), read<Index>(places), write<T>(to));
          });
        });
      },
      [p](Tensor& to, const Tensor& values, const Tensor& places) {
        cuda::pool_scatter(p.pool, to.dtype(), places.dtype(), values.raw_data(), places.raw_data(),
                           write<void>(to), to.device());
      });
  return is_half(dy.dtype()) ? cast(dx, dy.dtype()) : dx;
}

Tensor scatter(const Pooling& p, const Tensor& dy, const Tensor& taps);

// x at the taps.
Tensor gather(const Pooling& p, const Tensor& x, const Tensor& taps) {
  Tensor y = traced::any({&x, &taps})
                 ? traced::pool_gather(p.pool, p.seen_x(x), taps).with_shape(p.y_shape)
                 : gather_cpu(p, x, taps);
  record("max_pool_gather", {&x}, y, [p, taps](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return scatter(p, dy, taps); });
  });
  return y;
}

// dy at the taps, zero elsewhere.
Tensor scatter(const Pooling& p, const Tensor& dy, const Tensor& taps) {
  Tensor dx = traced::any({&dy, &taps})
                  ? traced::pool_scatter(p.pool, p.seen_y(dy), taps).with_shape(p.x_shape)
                  : scatter_cpu(p, dy, taps);
  record("max_pool_gradient", {&dy}, dx, [p, taps](const Tensor& d, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return gather(p, d, taps); });
  });
  return dx;
}

// ---- mean: linear, so that its gradient's gradient is itself

Tensor mean_cpu(const Pooling& p, const Tensor& x) {
  const Tensor from = in_float(x);
  const Device device = common_device(p.op, {&x}, {});
  Tensor y = make_result(device, from.dtype(), p.y_shape);
  launch(
      p.op, device, writes(y), reads(from),
      [p](Tensor& to, const Tensor& values) {
        visit_kernel(values.dtype(), [&]<class T>(const PoolKernel<T>& kernel, T) {
          kernel.mean(p.pool, read<T>(values), write<T>(to));
        });
      },
      [p](Tensor& to, const Tensor& values) {
        cuda::mean_pool(p.pool, to.dtype(), values.raw_data(), write<void>(to), to.device());
      });
  return is_half(x.dtype()) ? cast(y, x.dtype()) : y;
}

Tensor mean_gradient_cpu(const Pooling& p, const Tensor& dy) {
  const Tensor from = in_float(dy);
  const Device device = common_device(p.op, {&dy}, {});
  Tensor dx = make_result(device, from.dtype(), p.x_shape);
  launch(
      p.op, device, writes(dx), reads(from),
      [p](Tensor& to, const Tensor& values) {
        visit_kernel(values.dtype(), [&]<class T>(const PoolKernel<T>& kernel, T) {
          kernel.mean_gradient(p.pool, read<T>(values), write<T>(to));
        });
      },
      [p](Tensor& to, const Tensor& values) {
        cuda::mean_pool_gradient(p.pool, to.dtype(), values.raw_data(), write<void>(to),
                                 to.device());
      });
  return is_half(dy.dtype()) ? cast(dx, dy.dtype()) : dx;
}

Tensor mean_gradient(const Pooling& p, const Tensor& dy);

Tensor mean(const Pooling& p, const Tensor& x) {
  Tensor y = traced::on(x.device()) ? traced::mean_pool(p.pool, p.seen_x(x)).with_shape(p.y_shape)
                                    : mean_cpu(p, x);
  record(p.op, {&x}, y, [p](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return mean_gradient(p, dy); });
  });
  return y;
}

Tensor mean_gradient(const Pooling& p, const Tensor& dy) {
  Tensor dx = traced::on(dy.device())
                  ? traced::mean_pool_gradient(p.pool, p.seen_y(dy)).with_shape(p.x_shape)
                  : mean_gradient_cpu(p, dy);
  record("avg_pool_gradient", {&dy}, dx, [p](const Tensor& d, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return mean(p, d); });
  });
  return dx;
}

Tensor largest(const Pooling& p, const Tensor& x) {
  const Maxima result = maxima(p, x, recording({&x}));
  record(p.op, {&x}, result.y, [p, taps = result.taps](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return scatter(p, dy, taps); });
  });
  return result.y;
}

// ---- with checks

template <class Options>
Tensor max_pool(const char* op, int axes, const Tensor& x, const Options& options,
                SourceLocation at) {
  const Poolings p = checked(op, axes, x, options, at);
  const Tensor y = largest(p.plane, x);
  return p.depth ? largest(*p.depth, y) : y;
}

template <class Options>
Tensor avg_pool(const char* op, int axes, const Tensor& x, const Options& options,
                SourceLocation at) {
  const Poolings p = checked(op, axes, x, options, at);
  if (!p.depth) return mean(p.plane, x);
  return narrowed(mean(*p.depth, mean(p.plane, widened(x))), x.dtype());  // rounded once
}

ReduceOptions over_pixels(const char* op, const Tensor& x, const GlobalPoolOptions& options,
                          SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
  require(x.rank() >= 3, at, op, "expected images [batch, .., channels] of rank 3 or more, got ",
          x.shape());
  ReduceOptions reduce{.keep_dims = options.keep_dims};
  for (int axis = 1; axis < x.rank(); ++axis) {
    require(x.dim(axis) > 0, at, op, "expected extents of at least 1 but for the batch, got ",
            x.shape());
    if (axis + 1 < x.rank()) reduce.axes.push_back(axis);
  }
  return reduce;
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options, SourceLocation at) {
  return max_pool("max_pool1d", 1, x, options, at);
}
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options, SourceLocation at) {
  return max_pool("max_pool2d", 2, x, options, at);
}
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options, SourceLocation at) {
  return max_pool("max_pool3d", 3, x, options, at);
}

Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options, SourceLocation at) {
  return avg_pool("avg_pool1d", 1, x, options, at);
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options, SourceLocation at) {
  return avg_pool("avg_pool2d", 2, x, options, at);
}
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options, SourceLocation at) {
  return avg_pool("avg_pool3d", 3, x, options, at);
}

Tensor global_max_pool(const Tensor& x, const GlobalPoolOptions& options, SourceLocation at) {
  return max(x, over_pixels("global_max_pool", x, options, at), at);
}
Tensor global_avg_pool(const Tensor& x, const GlobalPoolOptions& options, SourceLocation at) {
  return mean(x, over_pixels("global_avg_pool", x, options, at), at);
}

}  // namespace lockstep
