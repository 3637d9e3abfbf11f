// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/recorder.h>

#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/pool_kernels.h"
#include "ops/traced.h"
#include "ops/window_extent.h"

namespace lockstep {
namespace {

// A pooling of images of `x_shape`, checked.
struct Pooling {
  const char* op;
  Shape x_shape, y_shape;
  Pool pool;

  // Taps are numbered in as few bytes as will do.
  DType tap_type() const { return pool.window_h * pool.window_w <= 256 ? DType::u8 : DType::i32; }
};

Pooling pooling_of(const char* op, const Tensor& x, const Pool2dOptions& options,
                   SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
  const Shape& shape = x.shape();
  require(shape.rank() == 4, at, op, "expected images [batch, height, width, channels], got ",
          shape);
  require(shape[1] > 0 && shape[2] > 0 && shape[3] > 0, at, op,
          "expected extents of at least 1 but for the batch, got ", shape);
  const WindowExtents extents =
      window_extents(op, shape, {2, as_3d(options.window), as_3d(options.strides), 1},
                     options.padding, at);
  const WindowExtent &h = extents.height, &w = extents.width;
  require(h.before < h.window && h.after < h.window && w.before < w.window && w.after < w.window,
          at, op, "expected less padding than the window of ", h.window, "x", w.window, ", got {",
          h.before, ", ", h.after, ", ", w.before, ", ", w.after, "} for images ", shape);
  return {.op = op,
          .x_shape = shape,
          .y_shape = Shape({shape[0], h.out, w.out, shape[3]}, at, op),
          .pool = {.batch = shape[0],
                   .in_h = h.in,
                   .in_w = w.in,
                   .out_h = h.out,
                   .out_w = w.out,
                   .channels = shape[3],
                   .window_h = h.window,
                   .window_w = w.window,
                   .stride_h = h.stride,
                   .stride_w = w.stride,
                   .pad_top = h.before,
                   .pad_left = w.before}};
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
Tensor widened(const Tensor& x) {
  if (!is_half(x.dtype())) return x;
  const RecorderScope unrecorded(nullptr);
  return cast(x, DType::f32);
}

// ---- max: the numbers of the taps make its gradient a scatter, and that one's a gather

struct Maxima {
  Tensor y, taps;
};

Maxima maxima(const Pooling& p, const Tensor& x, bool keep_taps) {
  const RecorderScope unrecorded(nullptr);
  if (traced::on(x.device())) {
    const auto [y, taps] = traced::max_pool(p.pool, x, keep_taps, p.tap_type());
    return {y, taps};
  }
  if (is_half(x.dtype())) {
    const Maxima wide = maxima(p, widened(x), keep_taps);
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
  const Tensor from = widened(x);
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
  const Tensor from = widened(dy);
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
  const Tensor y =
      traced::any({&x, &taps}) ? traced::pool_gather(p.pool, x, taps) : gather_cpu(p, x, taps);
  record("max_pool2d_gather", {&x}, y, [p, taps](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return scatter(p, dy, taps); });
  });
  return y;
}

// dy at the taps, zero elsewhere.
Tensor scatter(const Pooling& p, const Tensor& dy, const Tensor& taps) {
  const Tensor dx =
      traced::any({&dy, &taps}) ? traced::pool_scatter(p.pool, dy, taps) : scatter_cpu(p, dy, taps);
  record("max_pool2d_gradient", {&dy}, dx, [p, taps](const Tensor& d, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return gather(p, d, taps); });
  });
  return dx;
}

// ---- mean: linear, so that its gradient's gradient is itself

Tensor mean_cpu(const Pooling& p, const Tensor& x) {
  const Tensor from = widened(x);
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
  const Tensor from = widened(dy);
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
  const Tensor y = traced::on(x.device()) ? traced::mean_pool(p.pool, x) : mean_cpu(p, x);
  record("avg_pool2d", {&x}, y, [p](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return mean_gradient(p, dy); });
  });
  return y;
}

Tensor mean_gradient(const Pooling& p, const Tensor& dy) {
  const Tensor dx =
      traced::on(dy.device()) ? traced::mean_pool_gradient(p.pool, dy) : mean_gradient_cpu(p, dy);
  record("avg_pool2d_gradient", {&dy}, dx, [p](const Tensor& d, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return mean(p, d); });
  });
  return dx;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options, SourceLocation at) {
  const Pooling p = pooling_of("max_pool2d", x, options, at);
  common_device(p.op, {&x}, at);
  const Maxima result = maxima(p, x, recording({&x}));
  record(p.op, {&x}, result.y, [p, taps = result.taps](const Tensor& dy, GradientSink& sink) {
    if (sink.wants(0)) sink.put(0, [&] { return scatter(p, dy, taps); });
  });
  return result.y;
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options, SourceLocation at) {
  const Pooling p = pooling_of("avg_pool2d", x, options, at);
  common_device(p.op, {&x}, at);
  return mean(p, x);
}

}  // namespace lockstep
