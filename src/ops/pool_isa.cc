// SPDX-License-Identifier: Apache-2.0
#include "ops/pool_kernels.h"

#include <type_traits>

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

// The taps of one window that are inside its image, and where.
struct Window {
  std::int64_t first_i, last_i, first_j, last_j;  // half-open
  std::int64_t x;                                 // offset of tap (0, 0), which may be outside
  std::int64_t y;
};

// Calls f(window) for all windows in order.
template <class F>
[[gnu::always_inline]] inline void for_each_window(const Pool& p, F&& f) {
  Window w;
  w.y = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t r = 0; r < p.out_h; ++r) {
      const std::int64_t row = r * p.stride_h - p.pad_top;
      w.first_i = row < 0 ? -row : 0;
      w.last_i = p.in_h - row < p.window_h ? p.in_h - row : p.window_h;
      for (std::int64_t s = 0; s < p.out_w; ++s, w.y += p.channels) {
        const std::int64_t col = s * p.stride_w - p.pad_left;
        w.first_j = col < 0 ? -col : 0;
        w.last_j = p.in_w - col < p.window_w ? p.in_w - col : p.window_w;
        w.x = ((n * p.in_h + row) * p.in_w + col) * p.channels;
        f(w);
      }
    }
}

// Calls f(offset in x, number) for all taps of a window in order.
template <class F>
[[gnu::always_inline]] inline void for_each_tap(const Pool& p, const Window& w, F&& f) {
  for (std::int64_t i = w.first_i; i < w.last_i; ++i)
    for (std::int64_t j = w.first_j; j < w.last_j; ++j)
      f(w.x + (i * p.in_w + j) * p.channels, i * p.window_w + j);
}

// kWidth channels of one pixel in a register, and numbers of taps beside them.
template <class T>
struct Lanes {
#if defined(__AVX512F__)
  static constexpr int kBytes = 64;
#elif defined(__AVX__)
  static constexpr int kBytes = 32;
#else
  static constexpr int kBytes = 16;
#endif
  static constexpr int kWidth = kBytes / static_cast<int>(sizeof(T));
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef Integer Taps __attribute__((vector_size(kBytes)));
  template <class Index>
  struct Narrow {
    typedef Index Vector __attribute__((vector_size(kWidth * sizeof(Index))));
  };
};

// One register of channels, or where T stands for it one channel: the largest of a window's taps,
// the first of equals. NaN is larger than all. By masks, as g++ turns conditions on mixed types to
// jumps.
template <class Value, class Taps, class T>
[[gnu::always_inline]] inline void max_of_taps(const Pool& p, const Window& w, const T* x,
                                               Value& best, Taps& tap) {
  using Integer = typename Lanes<T>::Integer;
  bool first = true;
  for_each_tap(p, w, [&](std::int64_t at, std::int64_t number) {
    Value next;
    __builtin_memcpy(&next, x + at, sizeof next);
    if (first) {
      best = next;
      tap = Taps{} + static_cast<Integer>(number);
      first = false;
      return;
    }
    const auto taken = (next > best) | (next != next);
    best = taken ? next : best;
    tap = taken ? Taps{} + static_cast<Integer>(number) : tap;
  });
}

template <class T, class Index>
void max(const Pool& p, const T* x, T* y, Index* taps) {
  using L = Lanes<T>;
  for_each_window(p, [&](const Window& w) {
    std::int64_t k = 0;
    for (; k + L::kWidth <= p.channels; k += L::kWidth) {
      typename L::Vector best{};
      typename L::Taps tap{};
      max_of_taps(p, w, x + k, best, tap);
      __builtin_memcpy(y + w.y + k, &best, sizeof best);
      if (taps) {
        const auto narrow =
            __builtin_convertvector(tap, typename L::template Narrow<Index>::Vector);
        __builtin_memcpy(taps + w.y + k, &narrow, sizeof narrow);
      }
    }
    for (; k < p.channels; ++k) {
      T best{};
      typename L::Integer tap = 0;
      max_of_taps(p, w, x + k, best, tap);
      y[w.y + k] = best;
      if (taps) taps[w.y + k] = static_cast<Index>(tap);
    }
  });
}

// Windows that do not overlap write their taps, others add to them.
bool overlaps(const Pool& p) { return p.window_h > p.stride_h || p.window_w > p.stride_w; }

template <class T>
void clear(const Pool& p, T* dx) {
  const std::int64_t count = p.batch * p.in_h * p.in_w * p.channels;
  for (std::int64_t i = 0; i < count; ++i) dx[i] = T(0);
}

// All pixels lie in some window.
bool covers(const Pool& p) {
  return p.window_h >= p.stride_h && p.window_w >= p.stride_w &&
         (p.out_h - 1) * p.stride_h - p.pad_top + p.window_h >= p.in_h &&
         (p.out_w - 1) * p.stride_w - p.pad_left + p.window_w >= p.in_w;
}

template <class T, class Index>
void scatter(const Pool& p, const T* dy, const Index* taps, T* dx) {
  const bool adds = overlaps(p);
  if (adds || !covers(p)) clear(p, dx);
  for_each_window(p, [&](const Window& w) {
    const T* __restrict from = dy + w.y;
    const Index* __restrict chosen = taps + w.y;
    for_each_tap(p, w, [&](std::int64_t at, std::int64_t number) {
      T* __restrict to = dx + at;
      const auto tap = static_cast<Index>(number);
      if (adds)
        for (std::int64_t k = 0; k < p.channels; ++k) to[k] += chosen[k] == tap ? from[k] : T(0);
      else
        for (std::int64_t k = 0; k < p.channels; ++k) to[k] = chosen[k] == tap ? from[k] : T(0);
    });
  });
}

template <class T, class Index>
void gather(const Pool& p, const T* x, const Index* taps, T* y) {
  for_each_window(p, [&](const Window& w) {
    T* __restrict to = y + w.y;
    const Index* __restrict chosen = taps + w.y;
    for_each_tap(p, w, [&](std::int64_t at, std::int64_t number) {
      const T* __restrict from = x + at;
      const auto tap = static_cast<Index>(number);
      for (std::int64_t k = 0; k < p.channels; ++k) to[k] = chosen[k] == tap ? from[k] : to[k];
    });
  });
}

template <class T>
T share(const Window& w) {
  return T(1) / static_cast<T>((w.last_i - w.first_i) * (w.last_j - w.first_j));
}

template <class T>
void mean(const Pool& p, const T* x, T* y) {
  for_each_window(p, [&](const Window& w) {
    T* __restrict to = y + w.y;
    for (std::int64_t k = 0; k < p.channels; ++k) to[k] = T(0);
    for_each_tap(p, w, [&](std::int64_t at, std::int64_t) {
      const T* __restrict from = x + at;
      for (std::int64_t k = 0; k < p.channels; ++k) to[k] += from[k];
    });
    const T scale = share<T>(w);
    for (std::int64_t k = 0; k < p.channels; ++k) to[k] *= scale;
  });
}

template <class T>
void mean_gradient(const Pool& p, const T* dy, T* dx) {
  const bool adds = overlaps(p);
  if (adds || !covers(p)) clear(p, dx);
  for_each_window(p, [&](const Window& w) {
    const T* __restrict from = dy + w.y;
    const T scale = share<T>(w);
    for_each_tap(p, w, [&](std::int64_t at, std::int64_t) {
      T* __restrict to = dx + at;
      if (adds)
        for (std::int64_t k = 0; k < p.channels; ++k) to[k] += scale * from[k];
      else
        for (std::int64_t k = 0; k < p.channels; ++k) to[k] = scale * from[k];
    });
  });
}

template <class T, class Index>
constexpr MaxPoolKernel<T, Index> max_kernel() {
  return {.max = max<T, Index>, .scatter = scatter<T, Index>, .gather = gather<T, Index>};
}

template <class T>
constexpr PoolKernel<T> kernel() {
  return {.small = max_kernel<T, std::uint8_t>(),
          .large = max_kernel<T, std::int32_t>(),
          .mean = mean<T>,
          .mean_gradient = mean_gradient<T>};
}

}  // namespace

extern const PoolKernels pool_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
