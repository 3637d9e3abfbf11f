// SPDX-License-Identifier: Apache-2.0
#include "ops/depthwise_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

// Calls f(offset in x, in w, in y) for each tap inside the image of each pixel of y, where all
// channels lie together; begin(offset in y) before a pixel's taps and end(..) after them.
template <class Begin, class F, class End>
[[gnu::always_inline]] inline void for_each_tap(const Convolution& c, const Begin& begin,
                                                const F& f, const End& end) {
  std::int64_t y = 0;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t q = 0; q < c.out_d; ++q)
      for (std::int64_t r = 0; r < c.out_h; ++r)
        for (std::int64_t s = 0; s < c.out_w; ++s, y += c.out_c) {
          begin(y);
          std::int64_t w = 0;
          for (std::int64_t h = 0; h < c.kernel_d; ++h)
            for (std::int64_t i = 0; i < c.kernel_h; ++i)
              for (std::int64_t j = 0; j < c.kernel_w; ++j, w += c.out_c) {
                const std::int64_t depth = q * c.stride_d + h * c.dilation_d - c.pad_front;
                const std::int64_t row = r * c.stride_h + i * c.dilation_h - c.pad_top;
                const std::int64_t col = s * c.stride_w + j * c.dilation_w - c.pad_left;
                if (depth < 0 || depth >= c.in_d || row < 0 || row >= c.in_h || col < 0 ||
                    col >= c.in_w)
                  continue;
                f((((n * c.in_d + depth) * c.in_h + row) * c.in_w + col) * c.in_c, w, y);
              }
          end(y);
        }
}

constexpr auto kNothing = [](std::int64_t) {};

// to[k] += a[k] b[k]
template <class T>
[[gnu::always_inline]] inline void add_products(const T* a, const T* b, std::int64_t n,
                                                T* __restrict to) {
  for (std::int64_t k = 0; k < n; ++k) to[k] += a[k] * b[k];
}

template <class T>
void clear(T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = T(0);
}

template <class T>
void convolve(const Convolution& c, const T* x, const T* w, const T* bias, bool relu, T* y) {
  for_each_tap(
      c,
      [=, &c](std::int64_t to) {
        for (std::int64_t k = 0; k < c.out_c; ++k) y[to + k] = bias ? bias[k] : T(0);
      },
      [=, &c](std::int64_t from, std::int64_t tap, std::int64_t to) {
        add_products(x + from, w + tap, c.out_c, y + to);
      },
      [=, &c](std::int64_t to) {
        if (relu)
          for (std::int64_t k = 0; k < c.out_c; ++k)
            y[to + k] = y[to + k] < T(0) ? T(0) : y[to + k];
      });
}

template <class T>
void input_gradient(const Convolution& c, const T* dy, const T* w, T* dx) {
  clear(dx, c.batch * c.in_d * c.in_h * c.in_w * c.in_c);
  for_each_tap(
      c, kNothing,
      [=, &c](std::int64_t to, std::int64_t tap, std::int64_t from) {
        add_products(dy + from, w + tap, c.out_c, dx + to);
      },
      kNothing);
}

template <class T>
void weight_gradient(const Convolution& c, const T* x, const T* dy, T* dw) {
  clear(dw, c.kernel_d * c.kernel_h * c.kernel_w * c.out_c);
  for_each_tap(
      c, kNothing,
      [=, &c](std::int64_t in, std::int64_t tap, std::int64_t out) {
        add_products(x + in, dy + out, c.out_c, dw + tap);
      },
      kNothing);
}

template <class T>
constexpr DepthwiseKernel<T> kernel() {
  return {.convolve = convolve<T>,
          .input_gradient = input_gradient<T>,
          .weight_gradient = weight_gradient<T>};
}

}  // namespace

extern const DepthwiseKernels depthwise_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
