// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/window.cuh"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

// f(S{}, I{}) for the dtypes of elements and of the numbers of taps.
template <class F>
void visit_pooled(DType dtype, DType taps, F&& f) {
  const auto with_taps = [&](auto element) {
    if (taps == DType::u8)
      f(element, std::uint8_t{});
    else
      f(element, std::int32_t{});
  };
  if (dtype == DType::f64)
    with_taps(double{});
  else
    with_taps(float{});
}

Index results_of(const Pool& p) { return p.batch * p.out_h * p.out_w * p.channels; }
Index pixels_of(const Pool& p) { return p.batch * p.in_h * p.in_w * p.channels; }

}  // namespace

void convolve(const Convolution& conv, DType dtype, const void* x, const void* w, const void* bias,
              bool relu, void* y, Device device) {
  const Index n = conv.batch * conv.out_pixels() * conv.out_c;
  visit_floating(dtype, [&]<class S>(S) {
    run(convolve_kernel<S>, device, blocks_for(n), conv, in<S>(x), in<S>(w), in<S>(bias), relu,
        out<S>(y), n);
  });
}

void convolve_input_gradient(const Convolution& conv, DType dtype, const void* dy, const void* w,
                             void* dx, Device device) {
  const Index n = conv.batch * conv.in_pixels() * conv.in_c;
  visit_floating(dtype, [&]<class S>(S) {
    run(convolve_input_gradient_kernel<S>, device, blocks_for(n), conv, in<S>(dy), in<S>(w),
        out<S>(dx), n);
  });
}

void convolve_weight_gradient(const Convolution& conv, DType dtype, const void* x, const void* dy,
                              void* dw, Device device) {
  const Index n = conv.taps() * (conv.in_c / conv.groups) * conv.out_c;
  visit_floating(dtype, [&]<class S>(S) {
    run(convolve_weight_gradient_kernel<S>, device, static_cast<int>(std::min<Index>(n, 65535)),
        conv, in<S>(x), in<S>(dy), out<S>(dw), n);
  });
}

void max_pool(const Pool& pool, DType dtype, DType tap, const void* x, void* y, void* taps,
              Device device) {
  const Index n = results_of(pool);
  if (n == 0) return;
  visit_pooled(dtype, tap, [&]<class S, class I>(S, I) {
    run(max_pool_kernel<S, I>, device, blocks_for(n), pool, in<S>(x), out<S>(y), out<I>(taps), n);
  });
}

void pool_scatter(const Pool& pool, DType dtype, DType tap, const void* dy, const void* taps,
                  void* dx, Device device) {
  const Index n = pixels_of(pool);
  if (n == 0) return;
  visit_pooled(dtype, tap, [&]<class S, class I>(S, I) {
    run(pool_scatter_kernel<S, I>, device, blocks_for(n), pool, in<S>(dy), in<I>(taps), out<S>(dx),
        n);
  });
}

void pool_gather(const Pool& pool, DType dtype, DType tap, const void* x, const void* taps, void* y,
                 Device device) {
  const Index n = results_of(pool);
  if (n == 0) return;
  visit_pooled(dtype, tap, [&]<class S, class I>(S, I) {
    run(pool_gather_kernel<S, I>, device, blocks_for(n), pool, in<S>(x), in<I>(taps), out<S>(y), n);
  });
}

void mean_pool(const Pool& pool, DType dtype, const void* x, void* y, Device device) {
  const Index n = results_of(pool);
  if (n == 0) return;
  visit_pooled(dtype, DType::u8, [&]<class S, class I>(S, I) {
    run(mean_pool_kernel<S>, device, blocks_for(n), pool, in<S>(x), out<S>(y), n);
  });
}

void mean_pool_gradient(const Pool& pool, DType dtype, const void* dy, void* dx, Device device) {
  const Index n = pixels_of(pool);
  if (n == 0) return;
  visit_pooled(dtype, DType::u8, [&]<class S, class I>(S, I) {
    run(mean_pool_gradient_kernel<S>, device, blocks_for(n), pool, in<S>(dy), out<S>(dx), n);
  });
}

}  // namespace lockstep::cuda
