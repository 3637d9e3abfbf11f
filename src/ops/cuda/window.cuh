// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/convolution.h"
#include "ops/cuda/reduce.cuh"
#include "ops/pool_kernels.h"

// Convolutions and poolings, straight from their definitions (convolution.h, pool_kernels.h): a thread
// for each element that is written, a block for each of a weight's gradient. Right, and far from fast.
namespace lockstep::cuda {

// The indices of element i of [.., height, width, channels].
struct Pixel {
  Index image, row, column, channel;
  __device__ Pixel(Index i, Index height, Index width, Index channels)
      : image(i / (channels * width * height)),
        row(i / (channels * width) % height),
        column(i / channels % width),
        channel(i % channels) {}
};

// Where tap `tap` of output `place` reads along one axis; negative: outside.
__device__ inline Index input_of(Index place, Index tap, Index stride, Index dilation, Index pad,
                                 Index extent) {
  const Index at = place * stride + tap * dilation - pad;
  return at < extent ? at : -1;
}
// The output whose tap `tap` reads input `at`; negative: none does.
__device__ inline Index output_of(Index at, Index tap, Index stride, Index dilation, Index pad,
                                  Index extent) {
  const Index scaled = at + pad - tap * dilation;
  return scaled >= 0 && scaled % stride == 0 && scaled / stride < extent ? scaled / stride : -1;
}

// y = x * w + bias, then max(y, 0) where `relu`; bias may be null. n: elements of y.
template <class S>
__global__ void convolve_kernel(Convolution c, const S* x, const S* w, const S* bias, bool relu,
                                S* y, Index n) {
  const Index in = c.in_c / c.groups, out = c.out_c / c.groups;
  for (Index i = first_index(); i < n; i += index_step()) {
    const Pixel to(i, c.out_h, c.out_w, c.out_c);
    const Index first_channel = to.channel / out * in;
    Compute<S> sum = bias ? Storage<S>::load(bias[to.channel]) : Compute<S>(0);
    for (Index t = 0; t < c.kernel_d * c.kernel_h; ++t) {
      const Index plane = input_of(to.image % c.out_d, t / c.kernel_h, c.stride_d, c.dilation_d,
                                   c.pad_front, c.in_d);
      const Index row =
          plane < 0 ? -1
                    : input_of(to.row, t % c.kernel_h, c.stride_h, c.dilation_h, c.pad_top, c.in_h);
      const Index image = to.image / c.out_d * c.in_d + plane;
      for (Index b = 0; row >= 0 && b < c.kernel_w; ++b) {
        const Index column = input_of(to.column, b, c.stride_w, c.dilation_w, c.pad_left, c.in_w);
        if (column < 0) continue;
        const S* const from =
            x + ((image * c.in_h + row) * c.in_w + column) * c.in_c + first_channel;
        const S* const weights = w + (t * c.kernel_w + b) * in * c.out_c + to.channel;
        for (Index k = 0; k < in; ++k)
          sum += Storage<S>::load(from[k]) * Storage<S>::load(weights[k * c.out_c]);
      }
    }
    y[i] = Storage<S>::store(relu && sum < Compute<S>(0) ? Compute<S>(0) : sum);
  }
}

// n: elements of dx.
template <class S>
__global__ void convolve_input_gradient_kernel(Convolution c, const S* dy, const S* w, S* dx,
                                               Index n) {
  const Index in = c.in_c / c.groups, out = c.out_c / c.groups;
  for (Index i = first_index(); i < n; i += index_step()) {
    const Pixel to(i, c.in_h, c.in_w, c.in_c);
    const Index first_channel = to.channel / in * out;
    Compute<S> sum(0);
    for (Index t = 0; t < c.kernel_d * c.kernel_h; ++t) {
      const Index plane = output_of(to.image % c.in_d, t / c.kernel_h, c.stride_d, c.dilation_d,
                                    c.pad_front, c.out_d);
      const Index row = plane < 0 ? -1
                                  : output_of(to.row, t % c.kernel_h, c.stride_h, c.dilation_h,
                                              c.pad_top, c.out_h);
      const Index image = to.image / c.in_d * c.out_d + plane;
      for (Index b = 0; row >= 0 && b < c.kernel_w; ++b) {
        const Index column = output_of(to.column, b, c.stride_w, c.dilation_w, c.pad_left, c.out_w);
        if (column < 0) continue;
        const S* const from =
            dy + ((image * c.out_h + row) * c.out_w + column) * c.out_c + first_channel;
        const S* const weights =
            w + ((t * c.kernel_w + b) * in + to.channel % in) * c.out_c + first_channel;
        for (Index k = 0; k < out; ++k)
          sum += Storage<S>::load(from[k]) * Storage<S>::load(weights[k]);
      }
    }
    dx[i] = Storage<S>::store(sum);
  }
}

// n: elements of dw, [kernel_d, kernel_h, kernel_w, in_c / groups, out_c].
template <class S>
__global__ void convolve_weight_gradient_kernel(Convolution c, const S* x, const S* dy, S* dw,
                                                Index n) {
  const Index in = c.in_c / c.groups, out = c.out_c / c.groups;
  const Index pixels = c.batch * c.out_pixels();
  for (Index i = blockIdx.x; i < n; i += gridDim.x) {
    const Index channel = i % c.out_c, k = i / c.out_c % in;
    const Index b = i / (c.out_c * in) % c.kernel_w, t = i / (c.out_c * in * c.kernel_w);
    Compute<S> sum(0);
    for (Index p = threadIdx.x; p < pixels; p += blockDim.x) {
      const Pixel at(p, c.out_h, c.out_w, 1);
      const Index plane = input_of(at.image % c.out_d, t / c.kernel_h, c.stride_d, c.dilation_d,
                                   c.pad_front, c.in_d);
      const Index row =
          input_of(at.row, t % c.kernel_h, c.stride_h, c.dilation_h, c.pad_top, c.in_h);
      const Index column = input_of(at.column, b, c.stride_w, c.dilation_w, c.pad_left, c.in_w);
      if (plane < 0 || row < 0 || column < 0) continue;
      const Index image = at.image / c.out_d * c.in_d + plane;
      const S value =
          x[((image * c.in_h + row) * c.in_w + column) * c.in_c + channel / out * in + k];
      sum += Storage<S>::load(value) * Storage<S>::load(dy[p * c.out_c + channel]);
    }
    sum = block_combine(sum, SumOf{});
    if (threadIdx.x == 0) dw[i] = Storage<S>::store(sum);
  }
}

// ---- pooling; S is float or double, I an integer that numbers taps

// Calls f(offset in x, number of the tap) for all taps of a window that are inside, in order.
template <class F>
__device__ void for_each_tap(const Pool& p, const Pixel& window, F&& f) {
  for (Index a = 0; a < p.window_h; ++a) {
    const Index row = input_of(window.row, a, p.stride_h, 1, p.pad_top, p.in_h);
    for (Index b = 0; row >= 0 && b < p.window_w; ++b) {
      const Index column = input_of(window.column, b, p.stride_w, 1, p.pad_left, p.in_w);
      if (column >= 0)
        f(((window.image * p.in_h + row) * p.in_w + column) * p.channels + window.channel,
          a * p.window_w + b);
    }
  }
}
// Calls f(offset in y, number of the tap) for all windows that a pixel is a tap of.
template <class F>
__device__ void for_each_window(const Pool& p, const Pixel& pixel, F&& f) {
  for (Index a = 0; a < p.window_h; ++a) {
    const Index row = output_of(pixel.row, a, p.stride_h, 1, p.pad_top, p.out_h);
    for (Index b = 0; row >= 0 && b < p.window_w; ++b) {
      const Index column = output_of(pixel.column, b, p.stride_w, 1, p.pad_left, p.out_w);
      if (column >= 0)
        f(((pixel.image * p.out_h + row) * p.out_w + column) * p.channels + pixel.channel,
          a * p.window_w + b);
    }
  }
}

// The first of the largest taps, the last NaN before all; taps may be null.
template <class S, class I>
__global__ void max_pool_kernel(Pool p, const S* x, S* y, I* taps, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    S best(0);
    Index tap = -1;
    for_each_tap(p, Pixel(i, p.out_h, p.out_w, p.channels), [&](Index at, Index number) {
      const S value = x[at];
      if (tap >= 0 && !(value > best) && value == value) return;
      best = value;
      tap = number;
    });
    y[i] = best;
    if (taps) taps[i] = static_cast<I>(tap);
  }
}

template <class S, class I>
__global__ void pool_scatter_kernel(Pool p, const S* dy, const I* taps, S* dx, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    S sum(0);
    for_each_window(p, Pixel(i, p.in_h, p.in_w, p.channels), [&](Index at, Index number) {
      if (static_cast<Index>(taps[at]) == number) sum += dy[at];
    });
    dx[i] = sum;
  }
}

template <class S, class I>
__global__ void pool_gather_kernel(Pool p, const S* x, const I* taps, S* y, Index n) {
  for (Index i = first_index(); i < n; i += index_step())
    for_each_tap(p, Pixel(i, p.out_h, p.out_w, p.channels), [&](Index at, Index number) {
      if (static_cast<Index>(taps[i]) == number) y[i] = x[at];
    });
}

// How many taps of a window are inside.
__device__ inline Index taps_inside(const Pool& p, Index row, Index column) {
  const auto along = [](Index place, Index window, Index stride, Index pad, Index extent) {
    const Index first = place * stride - pad;
    const Index end = first + window < extent ? first + window : extent;
    return end - (first > 0 ? first : 0);
  };
  return along(row, p.window_h, p.stride_h, p.pad_top, p.in_h) *
         along(column, p.window_w, p.stride_w, p.pad_left, p.in_w);
}

template <class S>
__global__ void mean_pool_kernel(Pool p, const S* x, S* y, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Pixel window(i, p.out_h, p.out_w, p.channels);
    S sum(0);
    for_each_tap(p, window, [&](Index at, Index) { sum += x[at]; });
    y[i] = sum / static_cast<S>(taps_inside(p, window.row, window.column));
  }
}

template <class S>
__global__ void mean_pool_gradient_kernel(Pool p, const S* dy, S* dx, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    S sum(0);
    for_each_window(p, Pixel(i, p.in_h, p.in_w, p.channels), [&](Index at, Index) {
      const Pixel window(at, p.out_h, p.out_w, p.channels);
      sum += dy[at] / static_cast<S>(taps_inside(p, window.row, window.column));
    });
    dx[i] = sum;
  }
}

}  // namespace lockstep::cuda
