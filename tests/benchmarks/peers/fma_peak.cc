// SPDX-License-Identifier: Apache-2.0
// The time of as many floating point operations as a product of two 512 x 512 matrices takes, when
// all of them are fused multiply-adds between registers: the best one core can do.
#include <algorithm>
#include <cstdint>

#include "../window.h"

namespace {

constexpr std::int64_t kOperations = 2LL * 512 * 512 * 512;
// More than latency x throughput of any core so far, and with the two factors fewer than 16
// registers.
constexpr int kChains = 12;

template <int width>
struct Vector {
  typedef float type __attribute__((vector_size(width * sizeof(float))));
};

template <int width>
__attribute__((always_inline)) inline float multiply_add() {
  using Floats = typename Vector<width>::type;
  // Read through volatile, so that nothing is computed beforehand.
  volatile float factor = 0.999f, term = 0.001f;
  const Floats a = Floats{} + factor, b = Floats{} + term;
  Floats sums[kChains];
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = a + static_cast<float>(chain);
  for (std::int64_t i = 0; i < kOperations / (2 * width * kChains); ++i) {
#pragma GCC unroll 16
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] * a + b;
  }
  float result = 0;
  for (const Floats& sum : sums) result += sum[0];
  return result;
}

__attribute__((target("avx512f,fma"))) float with_avx512() { return multiply_add<16>(); }
__attribute__((target("avx2,fma"))) float with_avx2() { return multiply_add<8>(); }

}  // namespace

int main() {
  volatile float result = 0;
  const auto run = __builtin_cpu_supports("avx512f") ? with_avx512 : with_avx2;
  const auto other = with_avx2;
  const auto fastest = [](auto f, volatile float& sink) {
    const auto times = window::milliseconds_of([&] { sink = f(); }, 0.2);
    return std::ranges::min(times);
  };
  const bool wide = fastest(run, result) <= fastest(other, result);
  window::answer(wide ? "peak of fused multiply-adds" : "peak of fused multiply-adds (AVX2)",
                 [&] { result = wide ? run() : other(); });
}
