// SPDX-License-Identifier: Apache-2.0
// What one core can do at best, and tables of how much of it an operation reaches. Both are measured in
// the same run and in turn, as clocks change.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "window.h"

namespace benchmark {

// GFLOP/s of the fastest of the calls of f within `seconds`, of `operations` each.
template <class F>
double gflops(F&& f, double operations, double seconds) {
  const auto times = window::milliseconds_of(f, seconds);
  return operations / std::ranges::min(times) * 1e-6;
}

#if defined(__x86_64__)

inline constexpr std::int64_t kPeakRounds = 200'000;
// More than latency times throughput of any core so far, in fewer than 16 registers.
inline constexpr int kChains = 12;

// Operations of kPeakRounds fused multiply-adds on each of kChains registers; `sink` keeps them.
__attribute__((target("avx512f"))) inline double multiply_add_avx512(volatile float& sink) {
  const __m512 factor = _mm512_set1_ps(sink), term = _mm512_set1_ps(0.5F);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = term;
  for (std::int64_t i = 0; i < kPeakRounds; ++i)
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  float total = 0;
  for (const __m512& sum : sums) total += sum[0];
  sink = sink + 0 * total;
  return 2.0 * 16 * kChains * kPeakRounds;
}

__attribute__((target("avx2,fma"))) inline double multiply_add_avx2(volatile float& sink) {
  const __m256 factor = _mm256_set1_ps(sink), term = _mm256_set1_ps(0.5F);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = term;
  for (std::int64_t i = 0; i < kPeakRounds; ++i)
#pragma GCC unroll 16
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  float total = 0;
  for (const __m256& sum : sums) total += sum[0];
  sink = sink + 0 * total;
  return 2.0 * 8 * kChains * kPeakRounds;
}

inline double peak_gflops(double seconds) {
  volatile float factor = 0.5F;
  double operations = 0;
  const auto wide = [&] { operations = multiply_add_avx512(factor); };
  const auto narrow = [&] { operations = multiply_add_avx2(factor); };
  if (__builtin_cpu_supports("avx512f")) wide();
  const double of_wide = operations > 0 ? gflops(wide, operations, seconds) : 0;
  narrow();
  return std::max(of_wide, gflops(narrow, operations, seconds));
}

#else

inline double peak_gflops(double) { return 0; }  // not known

#endif

// Prints one row: the fastest of three windows, each beside a measurement of the peak.
template <class F>
void print_share_of_peak(const char* name, double operations, F&& f) {
  f();
  double best = 0, peak = 0;
  for (int window = 0; window < 3; ++window) {
    best = std::max(best, gflops(f, operations, 0.2));
    peak = std::max(peak, peak_gflops(0.05));
  }
  std::printf("%-36s %8.1f GFLOP/s   %5.2f of the peak %.1f\n", name, best, best / peak, peak);
  std::fflush(stdout);
}

}  // namespace benchmark
