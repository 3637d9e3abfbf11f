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
template <class V, class T>
[[gnu::always_inline]] inline void store(const V& v, T* y) {
  __builtin_memcpy(y, &v, sizeof v);
}

// kCount sums over i < n <= kRunBlock: add(i, sums) adds the terms of element i to sums[kCount], or
// where these are registers those of as many elements from i on. In one order for all registers.
template <int kCount, class T, class Add>
[[gnu::always_inline]] inline void sum_block(std::int64_t n, const Add& add, double* totals) {
  using L = Lanes<T>;
  typename L::Vector sums[L::kVectors][kCount];
  for (auto& vector : sums)
    for (auto& sum : vector) sum = typename L::Vector{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int v = 0; v < L::kVectors; ++v) add(i + v * L::kWidth, sums[v]);
  if (i < n) {
    T lanes[kCount][kLanes];
    for (int v = 0; v < L::kVectors; ++v)
      for (int c = 0; c < kCount; ++c)
        __builtin_memcpy(lanes[c] + v * L::kWidth, &sums[v][c], sizeof sums[v][c]);
    for (int k = 0; i < n; ++i, ++k) {
      T single[kCount];
      for (int c = 0; c < kCount; ++c) single[c] = lanes[c][k];
      add(i, single);
      for (int c = 0; c < kCount; ++c) lanes[c][k] = single[c];
    }
    for (int v = 0; v < L::kVectors; ++v)
      for (int c = 0; c < kCount; ++c)
        __builtin_memcpy(&sums[v][c], lanes[c] + v * L::kWidth, sizeof sums[v][c]);
  }
  for (int c = 0; c < kCount; ++c) {
    L lanes;
    for (int v = 0; v < L::kVectors; ++v) lanes.vectors[v] = sums[v][c];
    totals[c] += static_cast<double>(across<Plus>(lanes));
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
  const double part = 1 / static_cast<double>(n);
  for (double& mean : means) mean *= part;
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

// What one row adds to `parameters`, if asked for, and its dx, if not null:
// dx = factor (g - mean(g) - xhat mean(g xhat)), where g = dy scale and xhat = (x - mean) factor.
template <class T, bool scaled, bool with_parameters>
void row_gradient(const RowNorm& p, const T* dy, const T* x, const T* scale, T mean, T factor,
                  ParameterSums<T>& parameters, T* __restrict dx) {
  T *of_scale = parameters.scale, *of_offset = parameters.offset;
  double means[2];
  means_of<2, T>(
      p.n,
      [=]<class V>(std::int64_t i, V(&sums)[2]) __attribute__((always_inline)) {
        V own, value;
        load(dy + i, own);
        load(x + i, value);
        value = (value - mean) * factor;
        V g = own;
        if constexpr (scaled) {
          V s;
          load(scale + i, s);
          g = own * s;
        }
        sums[0] = sums[0] + g;
        sums[1] = sums[1] + g * value;
        if constexpr (with_parameters) {
          V sum;
          load(of_scale + i, sum);
          store(sum + own * value, of_scale + i);
          load(of_offset + i, sum);
          store(sum + own, of_offset + i);
        }
      },
      means);
  if (!dx) return;
  const T a = p.centred ? static_cast<T>(means[0]) : T(0);
  const T b = static_cast<T>(means[1]);
  for (std::int64_t i = 0; i < p.n; ++i) {
    const T g = scaled ? dy[i] * scale[i] : dy[i];
    dx[i] = factor * ((g - a) - (x[i] - mean) * factor * b);
  }
}

template <class T>
void row_gradients(const RowNorm& p, const T* dy, const T* x, const T* scale, const T* mean,
                   const T* variance, T* dx, T* dscale, T* doffset, void* scratch) {
  ParameterSums<T> sums(p.n, scratch);
  const bool parameters = dscale || doffset;
  const auto row = scale ? parameters ? row_gradient<T, true, true> : row_gradient<T, true, false>
                   : parameters ? row_gradient<T, false, true>
                                : row_gradient<T, false, false>;
  for (std::int64_t r = 0; r < p.rows; ++r, dy += p.n, x += p.n) {
    row(p, dy, x, scale, p.centred ? mean[r] : T(0), factor_of(variance[r], p.epsilon), sums,
        dx ? dx + r * p.n : nullptr);
    if ((r + 1) % kRowsInT == 0) sums.fold();
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
