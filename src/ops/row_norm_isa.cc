// SPDX-License-Identifier: Apache-2.0
#include "ops/norm_kernels.h"
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

template <class T>
[[gnu::always_inline]] inline void load(const T* x, T& v) {
  v = *x;
}
template <class T, class V>
[[gnu::always_inline]] inline void load(const T* x, V& v) {
  __builtin_memcpy(&v, x, sizeof v);
}

// kCount sums over i < n <= kRunBlock: add(i, sums) adds the terms of element i to sums[kCount], or
// where these are registers those of as many elements from i on. In one order for all registers.
template <int kCount, class T, class Add>
[[gnu::always_inline]] inline void sum_block(std::int64_t n, const Add& add, double* totals) {
  using L = Lanes<T>;
  T lanes[kCount][kLanes] = {};
  std::int64_t i = 0;
  if (n >= kLanes) {
    typename L::Vector sums[L::kVectors][kCount] = {};
    for (; i + kLanes <= n; i += kLanes)
      for (int v = 0; v < L::kVectors; ++v) add(i + v * L::kWidth, sums[v]);
    for (int v = 0; v < L::kVectors; ++v)
      for (int c = 0; c < kCount; ++c)
        __builtin_memcpy(lanes[c] + v * L::kWidth, &sums[v][c], sizeof sums[v][c]);
  }
  for (int k = 0; i < n; ++i, ++k) {
    T sums[kCount];
    for (int c = 0; c < kCount; ++c) sums[c] = lanes[c][k];
    add(i, sums);
    for (int c = 0; c < kCount; ++c) lanes[c][k] = sums[c];
  }
  for (int c = 0; c < kCount; ++c) {
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lanes[c][k] += lanes[c][k + half];
    totals[c] += static_cast<double>(lanes[c][0]);
  }
}

// The same over any n, divided by n.
template <int kCount, class T, class Add>
[[gnu::always_inline]] inline void means_of(std::int64_t n, const Add& add,
                                            double (&means)[kCount]) {
  for (double& mean : means) mean = 0;
  for (std::int64_t first = 0; first < n; first += kRunBlock) {
    const std::int64_t count = n - first < kRunBlock ? n - first : kRunBlock;
    sum_block<kCount, T>(
        count,
        [&]<class V>(std::int64_t i, V(&sums)[kCount])
            __attribute__((always_inline)) { add(first + i, sums); },
        means);
  }
  for (double& mean : means) mean /= static_cast<double>(n);
}

template <class T>
T factor_of(T variance, double epsilon) {
  return static_cast<T>(1.0 / __builtin_sqrt(static_cast<double>(variance) + epsilon));
}

template <class T>
void normalize_row(const T* x, std::int64_t n, T mean, T factor, const T* scale, const T* offset,
                   T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T normal = (x[i] - mean) * factor;
    const T scaled = scale ? normal * scale[i] : normal;
    y[i] = offset ? scaled + offset[i] : scaled;
  }
}

template <class T>
void normalize(const RowNorm& p, const T* x, const T* scale, const T* offset, T* y, T* mean,
               T* variance) {
  for (std::int64_t r = 0; r < p.rows; ++r, x += p.n, y += p.n) {
    double moment[1];
    T centre = T(0);
    if (p.centred) {
      means_of<1, T>(
          p.n,
          [x]<class V>(std::int64_t i, V(&sums)[1]) __attribute__((always_inline)) {
            V value;
            load(x + i, value);
            sums[0] = sums[0] + value;
          },
          moment);
      mean[r] = centre = static_cast<T>(moment[0]);
    }
    means_of<1, T>(
        p.n, [ x, centre ]<class V>(std::int64_t i, V(&sums)[1]) __attribute__((always_inline)) {
          V value;
          load(x + i, value);
          const V distance = value - centre;
          sums[0] = sums[0] + distance * distance;
        },
        moment);
    variance[r] = static_cast<T>(moment[0]);
    normalize_row(x, p.n, centre, factor_of(variance[r], p.epsilon), scale, offset, y);
  }
}

// dx = factor (g - mean(g) - xhat mean(g xhat)), where g = dy scale and xhat = (x - mean) factor.
template <class T, bool scaled>
void row_gradient(const RowNorm& p, const T* dy, const T* x, const T* scale, T mean, T factor,
                  T* __restrict dx) {
  double means[2];
  means_of<2, T>(
      p.n,
      [=]<class V>(std::int64_t i, V(&sums)[2]) __attribute__((always_inline)) {
        V g, value;
        load(dy + i, g);
        load(x + i, value);
        if constexpr (scaled) {
          V s;
          load(scale + i, s);
          g = g * s;
        }
        sums[0] = sums[0] + g;
        sums[1] = sums[1] + g * ((value - mean) * factor);
      },
      means);
  const T a = p.centred ? static_cast<T>(means[0]) : T(0);
  const T b = static_cast<T>(means[1]);
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T g = scaled ? dy[i] * scale[i] : dy[i];
    dx[i] = factor * ((g - a) - (x[i] - mean) * factor * b);
  }
}

constexpr std::int64_t kRowsInT = 64;  // rows whose gradients of the scale are added as T

// Sums over rows of what scale and offset get; in T for some rows, then in double.
template <class T>
struct ParameterSums {
  std::int64_t n;
  double* __restrict wide_scale;
  double* __restrict wide_offset;
  T* __restrict scale;
  T* __restrict offset;

  ParameterSums(std::int64_t count, void* scratch)
      : n(count),
        wide_scale(static_cast<double*>(scratch)),
        wide_offset(wide_scale + n),
        scale(reinterpret_cast<T*>(wide_offset + n)),
        offset(scale + n) {
    for (std::int64_t i = 0; i < n; ++i) wide_scale[i] = wide_offset[i] = 0;
    clear();
  }
  void clear() {
    for (std::int64_t i = 0; i < n; ++i) scale[i] = offset[i] = T(0);
  }
  void add_row(const T* dy, const T* x, T mean, T factor) {
    for (std::int64_t i = 0; i < n; ++i) {
      scale[i] += dy[i] * ((x[i] - mean) * factor);
      offset[i] += dy[i];
    }
  }
  void fold() {
    for (std::int64_t i = 0; i < n; ++i) {
      wide_scale[i] += static_cast<double>(scale[i]);
      wide_offset[i] += static_cast<double>(offset[i]);
    }
    clear();
  }
  static void write(const double* from, std::int64_t n, T* to) {
    for (std::int64_t i = 0; to && i < n; ++i) to[i] = static_cast<T>(from[i]);
  }
};

template <class T>
void row_gradients(const RowNorm& p, const T* dy, const T* x, const T* scale, const T* mean,
                   const T* variance, T* dx, T* dscale, T* doffset, void* scratch) {
  ParameterSums<T> sums(p.n, scratch);
  for (std::int64_t r = 0; r < p.rows; ++r, dy += p.n, x += p.n) {
    const T factor = factor_of(variance[r], p.epsilon);
    const T centre = p.centred ? mean[r] : T(0);
    if (dscale || doffset) {
      sums.add_row(dy, x, centre, factor);
      if ((r + 1) % kRowsInT == 0) sums.fold();
    }
    if (!dx) continue;
    if (scale)
      row_gradient<T, true>(p, dy, x, scale, centre, factor, dx + r * p.n);
    else
      row_gradient<T, false>(p, dy, x, scale, centre, factor, dx + r * p.n);
  }
  sums.fold();
  ParameterSums<T>::write(sums.wide_scale, p.n, dscale);
  ParameterSums<T>::write(sums.wide_offset, p.n, doffset);
}

template <class T>
constexpr RowNormKernel<T> kernel() {
  return {.normalize = normalize<T>, .gradient = row_gradients<T>};
}

}  // namespace

extern const RowNormKernels row_norm_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
