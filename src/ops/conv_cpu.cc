// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/device/buffer.h>

#include <algorithm>
#include <cstring>

#include "ops/convolution.h"
#include "ops/depthwise_kernels.h"
#include "ops/gemm.h"
#include "ops/half_kernels.h"
#include "ops/onednn.h"

// Convolutions on host memory: by oneDNN or, where it has no kernel, channel by channel if these do
// not see each other, else as matrix products over columns, the matrix [output pixels, taps] of all that the pixels read. Columns are made for a few
// images at a time, so that they stay in cache.
namespace lockstep::cpu {
namespace {

constexpr std::int64_t kColumnBytes = 512 * 1024;

struct Columns {
  const Convolution& conv;
  std::int64_t in = conv.in_c / conv.groups;
  std::int64_t out = conv.out_c / conv.groups;
  std::int64_t taps = conv.taps() * in;     // columns of the matrix, channels last
  std::int64_t pixels = conv.out_pixels();  // rows per image

  std::int64_t images(std::size_t element) const {
    const std::int64_t image = pixels * taps * static_cast<std::int64_t>(element);
    return std::clamp<std::int64_t>(kColumnBytes / std::max<std::int64_t>(image, 1), 1, conv.batch);
  }
};

// Calls f(input_offset, column_offset) for each tap of each output pixel of `images` images, where
// `in` channels lie together in both; input_offset is negative where the tap lies outside the
// image.
template <class F>
void for_each_tap(const Columns& columns, std::int64_t images, std::int64_t group, F&& f) {
  const Convolution& c = columns.conv;
  std::int64_t column = 0;
  // The taps of one plane of one pixel, of which the plane is -1 where it lies outside.
  const auto plane_taps = [&](std::int64_t plane, std::int64_t r, std::int64_t s) {
    for (std::int64_t i = 0; i < c.kernel_h; ++i) {
      const std::int64_t row = r * c.stride_h + i * c.dilation_h - c.pad_top;
      const bool row_inside = plane >= 0 && row >= 0 && row < c.in_h;
      for (std::int64_t j = 0; j < c.kernel_w; ++j) {
        const std::int64_t col = s * c.stride_w + j * c.dilation_w - c.pad_left;
        const bool inside = row_inside && col >= 0 && col < c.in_w;
        const std::int64_t pixel = (plane * c.in_h + row) * c.in_w + col;
        f(inside ? pixel * c.in_c + group * columns.in : -1, column);
        column += columns.in;
      }
    }
  };
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t q = 0; q < c.out_d; ++q)
      for (std::int64_t r = 0; r < c.out_h; ++r)
        for (std::int64_t s = 0; s < c.out_w; ++s)
          for (std::int64_t h = 0; h < c.kernel_d; ++h) {
            const std::int64_t depth = q * c.stride_d + h * c.dilation_d - c.pad_front;
            plane_taps(depth >= 0 && depth < c.in_d ? n * c.in_d + depth : -1, r, s);
          }
}

template <class T>
void gather(const Columns& columns, std::int64_t images, std::int64_t group, const T* x,
            T* matrix) {
  const auto bytes = static_cast<std::size_t>(columns.in) * sizeof(T);
  for_each_tap(columns, images, group, [&](std::int64_t from, std::int64_t to) {
    if (from >= 0)
      std::memcpy(matrix + to, x + from, bytes);
    else
      std::memset(matrix + to, 0, bytes);
  });
}

template <class T>
void scatter_add(const Columns& columns, std::int64_t images, std::int64_t group, const T* matrix,
                 T* dx) {
  for_each_tap(columns, images, group, [&](std::int64_t to, std::int64_t from) {
    if (to >= 0)
      for (std::int64_t k = 0; k < columns.in; ++k) dx[to + k] += matrix[from + k];
  });
}

// Calls f(first_image, images, group, matrix) for all groups of all pieces of the batch.
template <class T, class F>
void for_each_piece(const Columns& columns, Device device, F&& f) {
  const std::int64_t most = columns.images(sizeof(T));
  const Buffer matrix = Buffer::allocate(
      device, static_cast<std::size_t>(most * columns.pixels * columns.taps) * sizeof(T));
  for (std::int64_t first = 0; first < columns.conv.batch; first += most)
    for (std::int64_t group = 0; group < columns.conv.groups; ++group)
      f(first, std::min(most, columns.conv.batch - first), group, static_cast<T*>(matrix.data()));
}

template <class T>
constexpr DType kType = dtype_of<T>;

template <class T>
void convolve_by_columns(const Convolution& c, Device device, const T* x, const T* w, const T* bias,
                         bool relu, T* y) {
  const Columns columns{c};
  for_each_piece<T>(columns, device, [&](auto first, auto images, auto group, T* matrix) {
    gather(columns, images, group, x + first * c.in_pixels() * c.in_c, matrix);
    const std::int64_t channel = group * columns.out;
    compute({.m = images * columns.pixels,
             .n = columns.out,
             .k = columns.taps,
             .bias = bias != nullptr,
             .relu = relu,
             .row_b = c.out_c,
             .row_c = c.out_c},
            kType<T>, device, matrix, w + channel, bias ? bias + channel : nullptr,
            y + first * columns.pixels * c.out_c + channel);
  });
}

template <class T>
void input_gradient_by_columns(const Convolution& c, Device device, const T* dy, const T* w,
                               T* dx) {
  const Columns columns{c};
  const std::int64_t image = c.in_pixels() * c.in_c;
  std::fill_n(dx, c.batch * image, T(0));
  for_each_piece<T>(columns, device, [&](auto first, auto images, auto group, T* matrix) {
    const std::int64_t channel = group * columns.out;
    compute({.m = images * columns.pixels,
             .n = columns.taps,
             .k = columns.out,
             .transpose_b = true,
             .row_a = c.out_c,
             .row_b = c.out_c},
            kType<T>, device, dy + first * columns.pixels * c.out_c + channel, w + channel, nullptr,
            matrix);
    scatter_add(columns, images, group, matrix, dx + first * image);
  });
}

template <class T>
void weight_gradient_by_columns(const Convolution& c, Device device, const T* x, const T* dy,
                                T* dw) {
  const Columns columns{c};
  for_each_piece<T>(columns, device, [&](auto first, auto images, auto group, T* matrix) {
    gather(columns, images, group, x + first * c.in_pixels() * c.in_c, matrix);
    const std::int64_t channel = group * columns.out;
    compute({.m = columns.taps,
             .n = columns.out,
             .k = images * columns.pixels,
             .transpose_a = true,
             .accumulate = first > 0,
             .row_b = c.out_c,
             .row_c = c.out_c},
            kType<T>, device, matrix, dy + first * columns.pixels * c.out_c + channel, nullptr,
            dw + channel);
  });
}

bool is_depthwise(const Convolution& c) { return c.groups == c.in_c && c.groups == c.out_c; }
const DepthwiseKernel<float>& depthwise(float) { return depthwise_kernels().f32; }
const DepthwiseKernel<double>& depthwise(double) { return depthwise_kernels().f64; }

std::int64_t count_x(const Convolution& c) { return c.batch * c.in_pixels() * c.in_c; }
std::int64_t count_y(const Convolution& c) { return c.batch * c.out_pixels() * c.out_c; }
std::int64_t count_w(const Convolution& c) { return c.taps() * (c.in_c / c.groups) * c.out_c; }

Buffer floats(Device device, std::int64_t count) {
  return Buffer::allocate(device, static_cast<std::size_t>(count) * sizeof(float));
}
Buffer widened(Device device, DType dtype, const void* x, std::int64_t count) {
  Buffer wide = floats(device, count);
  half_kernels().widen(dtype, x, static_cast<float*>(wide.data()), count);
  return wide;
}
void narrow(DType dtype, const Buffer& wide, void* x, std::int64_t count) {
  half_kernels().narrow(dtype, static_cast<const float*>(wide.data()), x, count);
}

// f on the pointers as T, the dtype's element.
template <class F>
void visit(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  throw InternalError(message("convolve", "no kernel for ", name_of(dtype)));
}

}  // namespace

void convolve(const Convolution& conv, DType dtype, Device device, const void* x, const void* w,
              const void* bias, bool relu, void* y) {
  if (onednn::convolve(conv, dtype, device, x, w, bias, relu, y)) return;
  if (is_half(dtype)) {
    const Buffer wide_x = widened(device, dtype, x, count_x(conv));
    const Buffer wide_w = widened(device, dtype, w, count_w(conv));
    const Buffer wide_bias = bias ? widened(device, dtype, bias, conv.out_c) : Buffer();
    const Buffer wide_y = floats(device, count_y(conv));
    convolve(conv, DType::f32, device, wide_x.data(), wide_w.data(), wide_bias.data(), relu,
             wide_y.data());
    return narrow(dtype, wide_y, y, count_y(conv));
  }
  visit(dtype, [&]<class T>(T t) {
    const auto *from = static_cast<const T*>(x), *kernels = static_cast<const T*>(w),
               *added = static_cast<const T*>(bias);
    if (is_depthwise(conv))
      depthwise(t).convolve(conv, from, kernels, added, relu, static_cast<T*>(y));
    else
      convolve_by_columns(conv, device, from, kernels, added, relu, static_cast<T*>(y));
  });
}

void convolve_input_gradient(const Convolution& conv, DType dtype, Device device, const void* dy,
                             const void* w, void* dx) {
  if (onednn::convolve_input_gradient(conv, dtype, device, dy, w, dx)) return;
  if (is_half(dtype)) {
    const Buffer wide_dy = widened(device, dtype, dy, count_y(conv));
    const Buffer wide_w = widened(device, dtype, w, count_w(conv));
    const Buffer wide_dx = floats(device, count_x(conv));
    convolve_input_gradient(conv, DType::f32, device, wide_dy.data(), wide_w.data(),
                            wide_dx.data());
    return narrow(dtype, wide_dx, dx, count_x(conv));
  }
  visit(dtype, [&]<class T>(T t) {
    const auto *from = static_cast<const T*>(dy), *kernels = static_cast<const T*>(w);
    if (is_depthwise(conv))
      depthwise(t).input_gradient(conv, from, kernels, static_cast<T*>(dx));
    else
      input_gradient_by_columns(conv, device, from, kernels, static_cast<T*>(dx));
  });
}

void convolve_weight_gradient(const Convolution& conv, DType dtype, Device device, const void* x,
                              const void* dy, void* dw) {
  if (onednn::convolve_weight_gradient(conv, dtype, device, x, dy, dw)) return;
  if (is_half(dtype)) {
    const Buffer wide_x = widened(device, dtype, x, count_x(conv));
    const Buffer wide_dy = widened(device, dtype, dy, count_y(conv));
    const Buffer wide_dw = floats(device, count_w(conv));
    convolve_weight_gradient(conv, DType::f32, device, wide_x.data(), wide_dy.data(),
                             wide_dw.data());
    return narrow(dtype, wide_dw, dw, count_w(conv));
  }
  visit(dtype, [&]<class T>(T t) {
    const auto *images = static_cast<const T*>(x), *from = static_cast<const T*>(dy);
    if (is_depthwise(conv))
      depthwise(t).weight_gradient(conv, images, from, static_cast<T*>(dw));
    else
      weight_gradient_by_columns(conv, device, images, from, static_cast<T*>(dw));
  });
}

}  // namespace lockstep::cpu
