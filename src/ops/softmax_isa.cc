// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax_kernels.h"

#include "ops/math.h"
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kPiece = 512;  // elements whose terms are held on the stack

// The larger one, but for NaN, which may be passed over: whose row has NaN for its sum anyway.
struct LargerNumber {
  template <class V>
  [[gnu::always_inline]] static void into(V& a, const V& b) {
    a = b > a ? b : a;
  }
};

// a * b + c, rounded once where the CPU can.
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// exp(x) of what is left of x when the maximum is subtracted: x <= 0 or NaN. To 2 units in the last
// place; zero where the result is no longer a normal number.
[[gnu::always_inline]] inline float exp_below(float x) {
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = multiply_add(x, 1.44269504f, kRound);
  const float n = shifted - kRound;
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
  // (e^r - 1 - r) / r^2, as in math.h
  float p = 0.001395172028f;
  p = multiply_add(p, r, 0.00836959819f);
  p = multiply_add(p, r, 0.04166618724f);
  p = multiply_add(p, r, 0.1666651289f);
  p = multiply_add(p, r, 0.5000000101f);
  p = multiply_add(p * r, r, r) + 1.0f;
  const float scaled = math::float_of(math::bits_of(p) + (math::bits_of(shifted) << 23));
  return x < -87.0f ? 0.0f : scaled;
}
[[gnu::always_inline]] inline double exp_below(double x) { return math::exp(x); }

// F over n >= 1 elements in a row. Rows of some ten elements are as common as rows of thousands.
template <class F, class T>
[[gnu::always_inline]] inline T reduce_row(const T* x, std::int64_t n) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int kWidth = Lanes<T>::kWidth;
  std::int64_t i = 1;
  T result = x[0];
  if (n >= 4 * kWidth) {
    Vector v[4];
    __builtin_memcpy(v, x, sizeof v);
    for (i = 4 * kWidth; i + 4 * kWidth <= n; i += 4 * kWidth)
      for (int k = 0; k < 4; ++k) {
        Vector next;
        __builtin_memcpy(&next, x + i + k * kWidth, sizeof next);
        F::into(v[k], next);
      }
    F::into(v[0], v[1]);
    F::into(v[2], v[3]);
    F::into(v[0], v[2]);
    for (; i + kWidth <= n; i += kWidth) {
      Vector next;
      __builtin_memcpy(&next, x + i, sizeof next);
      F::into(v[0], next);
    }
    result = across<F, T>(v[0]);
  }
  for (; i < n; ++i) F::into(result, x[i]);
  return result;
}

// The sum of term(i) for i < n, added as reductions are.
template <class T, class Term>
[[gnu::always_inline]] inline T sum_of(std::int64_t n, Term&& term) {
  T terms[kPiece];
  T sum = T(0);
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = n - first < kPiece ? n - first : kPiece;
    for (std::int64_t i = 0; i < count; ++i) terms[i] = term(first + i);
    sum += reduce_row<Plus>(terms, count);
  }
  return sum;
}

template <class T>
T sum_of_exp(const T* x, std::int64_t n, T max) {
  return sum_of<T>(n, [=](std::int64_t i) { return exp_below(x[i] - max); });
}

// ---- along contiguous rows

// y = exp(x - max); gives the sum of y.
template <class T>
T exp_row(const T* x, std::int64_t n, T max, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = exp_below(x[i] - max);
  return reduce_row<Plus>(y, n);
}

template <class T>
void softmax_row(const T* x, std::int64_t n, T* __restrict y) {
  const T scale = T(1) / exp_row(x, n, reduce_row<LargerNumber>(x, n), y);
  for (std::int64_t i = 0; i < n; ++i) y[i] *= scale;
}

template <class T>
void log_softmax_row(const T* x, std::int64_t n, T* __restrict y) {
  const T max = reduce_row<LargerNumber>(x, n);
  const T log_sum = math::log(sum_of_exp(x, n, max));
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - max) - log_sum;
}

template <class T>
void softmax_gradient_row(const T* dy, const T* y, std::int64_t n, T* __restrict dx) {
  const T dot = sum_of<T>(n, [=](std::int64_t i) { return dy[i] * y[i]; });
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

template <class T>
void log_softmax_gradient_row(const T* dy, const T* y, std::int64_t n, T* __restrict dx) {
  const T sum = sum_of<T>(n, [=](std::int64_t i) { return dy[i]; });
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] - exp_below(y[i]) * sum;
}

// ---- across rows: `width` <= kPiece neighbouring columns at a time, elements of one `inner` apart

template <class T>
void max_of_columns(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width,
                    T* __restrict max) {
  for (std::int64_t j = 0; j < width; ++j) max[j] = x[j];
  for (std::int64_t i = 1; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const T next = x[i * inner + j];
      LargerNumber::into(max[j], next);
    }
}

template <class T>
void softmax_columns(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width,
                     T* __restrict y) {
  T max[kPiece], sum[kPiece];
  max_of_columns(x, n, inner, width, max);
  for (std::int64_t j = 0; j < width; ++j) sum[j] = T(0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const T e = exp_below(x[i * inner + j] - max[j]);
      y[i * inner + j] = e;
      sum[j] += e;
    }
  for (std::int64_t j = 0; j < width; ++j) sum[j] = T(1) / sum[j];
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) y[i * inner + j] *= sum[j];
}

template <class T>
void log_softmax_columns(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width,
                         T* __restrict y) {
  T max[kPiece], sum[kPiece];
  max_of_columns(x, n, inner, width, max);
  for (std::int64_t j = 0; j < width; ++j) sum[j] = T(0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) sum[j] += exp_below(x[i * inner + j] - max[j]);
  for (std::int64_t j = 0; j < width; ++j) sum[j] = math::log(sum[j]);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      y[i * inner + j] = (x[i * inner + j] - max[j]) - sum[j];
}

template <class T>
void softmax_gradient_columns(const T* dy, const T* y, std::int64_t n, std::int64_t inner,
                              std::int64_t width, T* __restrict dx) {
  T dot[kPiece];
  for (std::int64_t j = 0; j < width; ++j) dot[j] = T(0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) dot[j] += dy[i * inner + j] * y[i * inner + j];
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      dx[i * inner + j] = y[i * inner + j] * (dy[i * inner + j] - dot[j]);
}

template <class T>
void log_softmax_gradient_columns(const T* dy, const T* y, std::int64_t n, std::int64_t inner,
                                  std::int64_t width, T* __restrict dx) {
  T sum[kPiece];
  for (std::int64_t j = 0; j < width; ++j) sum[j] = T(0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j) sum[j] += dy[i * inner + j];
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      dx[i * inner + j] = dy[i * inner + j] - exp_below(y[i * inner + j]) * sum[j];
}

// ---- whole tensors

// row(offset) or columns(offset, width), whichever the extents ask for.
template <class Row, class Columns>
void for_each_run(const SoftmaxExtents& e, Row&& row, Columns&& columns) {
  for (std::int64_t o = 0; o < e.outer; ++o) {
    const std::int64_t offset = o * e.n * e.inner;
    if (e.inner == 1)
      row(offset);
    else
      for (std::int64_t j = 0; j < e.inner; j += kPiece)
        columns(offset + j, e.inner - j < kPiece ? e.inner - j : kPiece);
  }
}

template <class T>
void softmax(const SoftmaxExtents& e, const T* x, T* y) {
  for_each_run(
      e, [&](std::int64_t at) { softmax_row(x + at, e.n, y + at); },
      [&](std::int64_t at, std::int64_t width) {
        softmax_columns(x + at, e.n, e.inner, width, y + at);
      });
}

template <class T>
void log_softmax(const SoftmaxExtents& e, const T* x, T* y) {
  for_each_run(
      e, [&](std::int64_t at) { log_softmax_row(x + at, e.n, y + at); },
      [&](std::int64_t at, std::int64_t width) {
        log_softmax_columns(x + at, e.n, e.inner, width, y + at);
      });
}

template <class T>
void softmax_gradient(const SoftmaxExtents& e, const T* dy, const T* y, T* dx) {
  for_each_run(
      e, [&](std::int64_t at) { softmax_gradient_row(dy + at, y + at, e.n, dx + at); },
      [&](std::int64_t at, std::int64_t width) {
        softmax_gradient_columns(dy + at, y + at, e.n, e.inner, width, dx + at);
      });
}

template <class T>
void log_softmax_gradient(const SoftmaxExtents& e, const T* dy, const T* y, T* dx) {
  for_each_run(
      e, [&](std::int64_t at) { log_softmax_gradient_row(dy + at, y + at, e.n, dx + at); },
      [&](std::int64_t at, std::int64_t width) {
        log_softmax_gradient_columns(dy + at, y + at, e.n, e.inner, width, dx + at);
      });
}

template <class T>
void log_sums(const T* x, std::int64_t rows, std::int64_t n, T* max, T* log_sum, T* y, T* scale) {
  for (std::int64_t r = 0; r < rows; ++r, x += n) {
    max[r] = reduce_row<LargerNumber>(x, n);
    const T sum = y ? exp_row(x, n, max[r], y + r * n) : sum_of_exp(x, n, max[r]);
    if (y) scale[r] = T(1) / sum;
    log_sum[r] = math::log(sum);
  }
}

template <class T>
void cross_entropy_gradient_row(T d, const T* y, T scale, const T* labels, std::int64_t n,
                                T* __restrict dx) {
  if (!labels) {
    const T factor = d * scale;
    for (std::int64_t i = 0; i < n; ++i) dx[i] = factor * y[i];
    return;
  }
  const T total = scale * sum_of<T>(n, [=](std::int64_t i) { return labels[i]; });
  for (std::int64_t i = 0; i < n; ++i) dx[i] = d * (total * y[i] - labels[i]);
}

template <class T>
void cross_entropy_gradient(const T* d, const T* y, const T* scale, const T* labels,
                            std::int64_t rows, std::int64_t n, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r)
    cross_entropy_gradient_row(d[r], y + r * n, scale[r], labels ? labels + r * n : nullptr, n,
                               dx + r * n);
}

template <class T>
void cross_entropy(const T* labels, const T* x, const T* max, const T* log_sum, std::int64_t rows,
                   std::int64_t n, T* loss) {
  for (std::int64_t r = 0; r < rows; ++r, labels += n, x += n)
    loss[r] = sum_of<T>(n, [=, m = max[r], s = log_sum[r]](std::int64_t i) {
      const T term = labels[i] * (s + (m - x[i]));
      return labels[i] == T(0) ? T(0) : term;  // though x be minus infinity
    });
}

template <class T>
constexpr SoftmaxKernel<T> kernel() {
  return {.softmax = softmax<T>,
          .log_softmax = log_softmax<T>,
          .softmax_gradient = softmax_gradient<T>,
          .log_softmax_gradient = log_softmax_gradient<T>,
          .log_sums = log_sums<T>,
          .cross_entropy = cross_entropy<T>,
          .cross_entropy_gradient = cross_entropy_gradient<T>};
}

}  // namespace

extern const SoftmaxKernels softmax_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
