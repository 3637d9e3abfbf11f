// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_kernels.h"
#include "ops/math.h"
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kPiece = 512;  // elements whose terms are held on the stack

template <class T>
constexpr T kHidden = -static_cast<T>(__builtin_inf());

template <class T>
T sum_of(const T* x, std::int64_t n) {
  T sum = T(0);
  for (std::int64_t i = 0; i < n; i += kRunBlock)
    sum += reduce_block<Plus>(x + i, n - i < kRunBlock ? n - i : kRunBlock);
  return sum;
}

template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = T(0), terms[kPiece];
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = n - first < kPiece ? n - first : kPiece;
    for (std::int64_t i = 0; i < count; ++i) terms[i] = a[first + i] * b[first + i];
    sum += reduce_block<Plus>(terms, count);
  }
  return sum;
}

template <class T>
std::int64_t seen_by(const Scores<T>& s, std::int64_t row) {
  return s.first_query + row + 1 < s.cols ? s.first_query + row + 1 : s.cols;
}

// What the softmax is taken of, of the first n columns of a row.
template <class T>
void mask_row(const Scores<T>& s, std::int64_t row, std::int64_t n, T* __restrict x) {
  if (s.visible) {
    const bool* visible = s.visible + row * s.mask_row;
    if (s.mask_col == 0)
      for (std::int64_t i = 0; i < n; ++i) x[i] = *visible ? x[i] * s.scale : kHidden<T>;
    else
      for (std::int64_t i = 0; i < n; ++i) {
        const T scaled = x[i] * s.scale;
        x[i] = visible[i] ? scaled : kHidden<T>;
      }
  } else if (s.added) {
    const T* added = s.added + row * s.mask_row;
    // Hidden whatever the product is, be it infinite.
    if (s.mask_col == 0)
      for (std::int64_t i = 0; i < n; ++i)
        x[i] = *added == kHidden<T> ? kHidden<T> : x[i] * s.scale + *added;
    else
      for (std::int64_t i = 0; i < n; ++i) {
        const T value = x[i] * s.scale + added[i];
        x[i] = added[i] == kHidden<T> ? kHidden<T> : value;
      }
  } else {
    for (std::int64_t i = 0; i < n; ++i) x[i] *= s.scale;
  }
}

template <class T>
T softmax_row(T* __restrict x, std::int64_t n) {
  const T max = n > 0 ? reduce_block<Larger>(x, n) : kHidden<T>;
  if (max == kHidden<T>) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = T(0);
    return -kHidden<T>;
  }
  for (std::int64_t i = 0; i < n; ++i) x[i] = math::exp(x[i] - max);
  const T sum = sum_of(x, n), factor = T(1) / sum;
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
  return max + math::log(sum);
}

template <class T>
void probabilities(const Scores<T>& s, T* products, T* log_sums) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    T* row = products + r * s.cols;
    const std::int64_t seen = seen_by(s, r);
    mask_row(s, r, seen, row);
    log_sums[r] = softmax_row(row, seen);
    for (std::int64_t i = seen; i < s.cols; ++i) row[i] = T(0);
  }
}

template <class T>
void gradient_row(const T* __restrict p, T slope, T scale, std::int64_t n, T* __restrict dp,
                  T* __restrict dmask, std::int64_t mask_col) {
  for (std::int64_t i = 0; i < n; ++i) dp[i] = p[i] * (dp[i] - slope);
  if (dmask && mask_col == 0) *dmask += sum_of(dp, n);
  if (dmask && mask_col == 1)
    for (std::int64_t i = 0; i < n; ++i) dmask[i] += dp[i];
  for (std::int64_t i = 0; i < n; ++i) dp[i] *= scale;
}

template <class T>
void gradient(const Scores<T>& s, const T* log_sums, const T* dy, const T* y, std::int64_t out,
              T* products, T* dp, T* dmask) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    T *row = products + r * s.cols, *drow = dp + r * s.cols;
    const std::int64_t seen = seen_by(s, r);
    mask_row(s, r, seen, row);
    const T log_sum = log_sums[r];
    for (std::int64_t i = 0; i < seen; ++i) row[i] = math::exp(row[i] - log_sum);
    gradient_row(row, dot(dy + r * out, y + r * out, out), s.scale, seen, drow,
                 dmask ? dmask + r * s.mask_row : nullptr, s.mask_col);
    for (std::int64_t i = seen; i < s.cols; ++i) row[i] = drow[i] = T(0);
  }
}

template <class T>
constexpr AttentionKernel<T> kernel() {
  return {.probabilities = probabilities<T>, .gradient = gradient<T>};
}

}  // namespace

extern const AttentionKernels attention_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
