// SPDX-License-Identifier: Apache-2.0
#include "ops/norm_cpu.h"

#include <lockstep/device/buffer.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/norm_kernels.h"
#include "ops/result.h"

namespace lockstep::cpu {
namespace {

const RowNormKernel<float>& rows_of(float) { return row_norm_kernels().f32; }
const RowNormKernel<double>& rows_of(double) { return row_norm_kernels().f64; }
const ColumnNormKernel<float>& columns_of(float) { return column_norm_kernels().f32; }
const ColumnNormKernel<double>& columns_of(double) { return column_norm_kernels().f64; }

template <class T>
const T* read_or_null(const Tensor& x) {
  return x.defined() ? read<T>(x) : nullptr;
}
template <class T>
T* write_or_null(Tensor& x) {
  return x.defined() ? write<T>(x) : nullptr;
}

// Arrays with an element per channel, some in double and some in T, from the pool.
template <class T>
class Channels {
 public:
  Channels(Device device, std::int64_t channels, std::int64_t wide, std::int64_t narrow)
      : channels_(channels),
        wide_(wide),
        memory_(Buffer::allocate(
            device,
            static_cast<std::size_t>(channels * (wide * 8 + narrow * std::int64_t{sizeof(T)})))) {}
  double* wide(std::int64_t i) const {
    return static_cast<double*>(memory_.data()) + i * channels_;
  }
  T* narrow(std::int64_t i) const { return reinterpret_cast<T*>(wide(wide_)) + i * channels_; }

 private:
  std::int64_t channels_, wide_;
  Buffer memory_;
};

RowNorm row_norm(const Norm& n) {
  return {.rows = n.samples, .n = n.size, .epsilon = n.epsilon, .centred = n.centred};
}

template <class T>
double factor_of(const Norm& n, T variance) {
  return 1 / std::sqrt(static_cast<double>(variance) + n.epsilon);
}

// The statistics of one sample from those of its channels.
template <class T>
void combine(const Norm& n, const double* means, const double* squares, T* mean, T* variance) {
  for (std::int64_t g = 0; g < n.groups; ++g, means += n.size, squares += n.size) {
    double centre = 0, total = 0;
    for (std::int64_t k = 0; k < n.size; ++k) centre += means[k] / static_cast<double>(n.size);
    for (std::int64_t k = 0; k < n.size; ++k) {
      const double distance = means[k] - centre;
      total += squares[k] + static_cast<double>(n.rows) * distance * distance;
    }
    mean[g] = static_cast<T>(centre);
    variance[g] = static_cast<T>(total / n.count());
  }
}

template <class T>
void normalize_columns(const Norm& n, const T* x, const T* scale, const T* offset, T* mean,
                       T* variance, T* y, Device device) {
  const std::int64_t channels = n.channels(), sample = n.rows * channels;
  const Channels<T> scratch(device, channels, 2, 3);
  T *shift = scratch.narrow(0), *a = scratch.narrow(1), *b = scratch.narrow(2);
  for (std::int64_t s = 0; s < n.samples; ++s, mean += n.groups, variance += n.groups) {
    if (!n.given) {
      columns_of(T{}).moments(x + s * sample, n.rows, channels, scratch.wide(0), scratch.wide(1));
      combine(n, scratch.wide(0), scratch.wide(1), mean, variance);
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t g = c / n.size;
      shift[c] = mean[g];
      a[c] =
          static_cast<T>(factor_of(n, variance[g]) * (scale ? static_cast<double>(scale[c]) : 1));
      b[c] = offset ? offset[c] : T(0);
    }
    columns_of(T{}).affine(x + s * sample, n.rows, channels, shift, a, b, y + s * sample);
  }
}

// The gradient of x is dy a + (x - mean) b + c, by channel; where the statistics are given b and c are
// 0.
template <class T>
struct Coefficients {
  T *a, *b, *c;
};

// For one group: the formula of norm.cc, with the gradients of its mean and variance.
template <class T>
void coefficients_of(const Norm& n, const T* scale, const double* of_dy, const double* of_products,
                     double factor, double of_mean, double of_variance, const Coefficients<T>& to) {
  const auto weight = [&](std::int64_t k) { return scale ? static_cast<double>(scale[k]) : 1.0; };
  double sum = 0, product = 0;
  for (std::int64_t k = 0; k < n.size; ++k) {
    sum += weight(k) * of_dy[k];
    product += weight(k) * of_products[k];
  }
  const double b = (2 * of_variance - factor * factor * factor * product) / n.count();
  const double c = (of_mean - factor * sum) / n.count();
  for (std::int64_t k = 0; k < n.size; ++k) {
    to.a[k] = static_cast<T>(factor * weight(k));
    to.b[k] = static_cast<T>(n.given ? 0 : b);
    to.c[k] = static_cast<T>(n.given ? 0 : c);
  }
}

// Statistics that are given are of single channels.
template <class T>
void put_parameters(const Norm& n, const T* scale, const T* variance, const double* dscale,
                    const double* doffset, NormGradients& to) {
  const auto put = [&](Tensor& gradient, auto&& value) {
    if (!gradient.defined()) return;
    for (std::int64_t c = 0; c < n.channels(); ++c)
      write<T>(gradient)[c] = static_cast<T>(value(c));
  };
  const auto slope = [&](std::int64_t c) {
    return factor_of(n, variance[c]) * (scale ? static_cast<double>(scale[c]) : 1);
  };
  put(to.scale, [&](std::int64_t c) { return dscale[c]; });
  put(to.offset, [&](std::int64_t c) { return doffset[c]; });
  put(to.mean, [&](std::int64_t c) { return -slope(c) * doffset[c]; });
  put(to.variance,
      [&](std::int64_t c) { return -0.5 * slope(c) * factor_of(n, variance[c]) * dscale[c]; });
}

template <class T>
void columns_gradient(const Norm& n, const NormGradients& d, const T* x, const T* scale,
                      const T* mean, const T* variance, NormGradients& to, Device device) {
  const std::int64_t channels = n.channels(), sample = n.rows * channels;
  const Channels<T> scratch(device, channels, 4, 4);
  double *of_dy = scratch.wide(0), *of_products = scratch.wide(1), *dscale = scratch.wide(2),
         *doffset = scratch.wide(3);
  T* shift = scratch.narrow(0);
  const Coefficients<T> coefficients{scratch.narrow(1), scratch.narrow(2), scratch.narrow(3)};
  const T *dmean = read_or_null<T>(d.mean), *dvariance = read_or_null<T>(d.variance);
  std::fill_n(dscale, channels, 0.0);
  std::fill_n(doffset, channels, 0.0);
  for (std::int64_t s = 0; s < n.samples; ++s) {
    const T *dy = read<T>(d.x) + s * sample, *own = x + s * sample;
    for (std::int64_t c = 0; c < channels; ++c) shift[c] = mean[s * n.groups + c / n.size];
    columns_of(T{}).sums(dy, own, n.rows, channels, shift, of_dy, of_products);
    for (std::int64_t g = 0; g < n.groups; ++g) {
      const std::int64_t i = s * n.groups + g, first = g * n.size;
      const double factor = factor_of(n, variance[i]);
      for (std::int64_t c = first; c < first + n.size; ++c) {
        dscale[c] += factor * of_products[c];
        doffset[c] += of_dy[c];
      }
      coefficients_of<T>(n, scale ? scale + first : nullptr, of_dy + first, of_products + first,
                         factor, dmean ? static_cast<double>(dmean[i]) : 0,
                         dvariance ? static_cast<double>(dvariance[i]) : 0,
                         {coefficients.a + first, coefficients.b + first, coefficients.c + first});
    }
    if (!to.x.defined()) continue;
    T* const dx = write<T>(to.x) + s * sample;
    if (n.given)
      columns_of(T{}).affine(dy, n.rows, channels, coefficients.b, coefficients.a, coefficients.c,
                             dx);
    else
      columns_of(T{}).gradient(dy, own, n.rows, channels, shift, coefficients.a, coefficients.b,
                               coefficients.c, dx);
  }
  put_parameters(n, scale, variance, dscale, doffset, to);
}

// f(T{}) with the type of the elements.
template <class F>
void visit(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f(double{});
  else
    f(float{});
}

}  // namespace

void normalize(const Norm& n, const Tensor& x, const Tensor& scale, const Tensor& offset,
               Tensor& mean, Tensor& variance, Tensor& y) {
  visit(x.dtype(), [&]<class T>(T) {
    if (n.by_row())
      rows_of(T{}).normalize(row_norm(n), read<T>(x), read_or_null<T>(scale),
                             read_or_null<T>(offset), write<T>(y), write_or_null<T>(mean),
                             write<T>(variance));
    else
      normalize_columns(n, read<T>(x), read_or_null<T>(scale), read_or_null<T>(offset),
                        write<T>(mean), write<T>(variance), write<T>(y), y.device());
  });
}

void normalize_gradient(const Norm& n, const NormGradients& d, const Tensor& x, const Tensor& scale,
                        const Tensor& mean, const Tensor& variance, NormGradients& to) {
  visit(x.dtype(), [&]<class T>(T) {
    if (!n.by_row() || d.mean.defined() || d.variance.defined())
      return columns_gradient(n, d, read<T>(x), read_or_null<T>(scale), read<T>(mean),
                              read<T>(variance), to, x.device());
    const Buffer scratch = Buffer::allocate(x.device(), row_norm_scratch_bytes(n.size));
    rows_of(T{}).gradient(row_norm(n), read<T>(d.x), read<T>(x), read_or_null<T>(scale),
                          read_or_null<T>(mean), read<T>(variance), write_or_null<T>(to.x),
                          write_or_null<T>(to.scale), write_or_null<T>(to.offset), scratch.data());
  });
}

}  // namespace lockstep::cpu
