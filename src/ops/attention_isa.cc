// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_kernels.h"
#include "ops/math.h"
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

template <class T>
constexpr T kHidden = -static_cast<T>(__builtin_inf());

// Rows are short, and of all lengths where attention is causal: they are reduced in 16 lanes, whatever
// the registers, and what is left over one by one.
constexpr int kRowLanes = 16;

template <class T>
struct RowLanes {
  using Vector = typename Lanes<T>::Vector;
  static constexpr int kWidth = Lanes<T>::kWidth;
  static constexpr int kVectors = kRowLanes / kWidth;
  Vector vectors[kVectors];

  [[gnu::always_inline]] void load(const T* x) { __builtin_memcpy(vectors, x, sizeof vectors); }
  template <class F>
  [[gnu::always_inline]] void combine(const RowLanes& other) {
    for (int i = 0; i < kVectors; ++i) F::into(vectors[i], other.vectors[i]);
  }
  [[gnu::always_inline]] void multiply(const RowLanes& other) {
    for (int i = 0; i < kVectors; ++i) vectors[i] = vectors[i] * other.vectors[i];
  }
  template <class F>
  [[gnu::always_inline]] T across() const {
    T lane[kRowLanes];
    __builtin_memcpy(lane, vectors, sizeof lane);
    for (int half = kRowLanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) F::into(lane[k], lane[k + half]);
    return lane[0];
  }
};

// F over x[i], or over x[i] y[i] where `y` is not null; n > 0.
template <class F, class T>
[[gnu::always_inline]] inline T reduced(const T* x, const T* y, std::int64_t n) {
  const auto next = [=](std::int64_t i) __attribute__((always_inline)) {
    RowLanes<T> value;
    value.load(x + i);
    if (y) {
      RowLanes<T> factor;
      factor.load(y + i);
      value.multiply(factor);
    }
    return value;
  };
  std::int64_t i = 0;
  T result = T(0);
  if (n >= kRowLanes) {
    RowLanes<T> lanes = next(0);
    for (i = kRowLanes; i + kRowLanes <= n; i += kRowLanes) lanes.template combine<F>(next(i));
    result = lanes.template across<F>();
  } else {
    result = y ? x[0] * y[0] : x[0];
    i = 1;
  }
  for (; i < n; ++i) {
    const T value = y ? x[i] * y[i] : x[i];
    F::into(result, value);
  }
  return result;
}

template <class T>
T max_of(const T* x, std::int64_t n) {
  return reduced<Larger>(x, static_cast<const T*>(nullptr), n);
}
template <class T>
T sum_of(const T* x, std::int64_t n) {
  return n > 0 ? reduced<Plus>(x, static_cast<const T*>(nullptr), n) : T(0);
}
template <class T>
T dot(const T* a, const T* b, std::int64_t n) {
  return n > 0 ? reduced<Plus>(a, b, n) : T(0);
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
  const T max = n > 0 ? max_of(x, n) : kHidden<T>;
  if (max == kHidden<T>) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = T(0);
    return -kHidden<T>;
  }
  for (std::int64_t i = 0; i < n; ++i) x[i] = math::exp(x[i] - max);
  const T sum = sum_of(x, n), factor = T(1) / sum;
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
  return max + math::log(sum);
}

// Where a row may end so that no lane is left over: what it does not see there is hidden.
template <class T>
std::int64_t padded(std::int64_t seen, std::int64_t cols, T* row) {
  const std::int64_t whole = (seen + kRowLanes - 1) / kRowLanes * kRowLanes;
  const std::int64_t end = whole < cols ? whole : cols;
  for (std::int64_t i = seen; i < end; ++i) row[i] = kHidden<T>;
  return end;
}

template <class T>
void probabilities(const Scores<T>& s, T* products, T* log_sums) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    T* row = products + r * s.cols;
    const std::int64_t seen = seen_by(s, r);
    mask_row(s, r, seen, row);
    const std::int64_t end = padded(seen, s.cols, row);
    log_sums[r] = softmax_row(row, end);
    for (std::int64_t i = end; i < s.cols; ++i) row[i] = T(0);
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
