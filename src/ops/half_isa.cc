// SPDX-License-Identifier: Apache-2.0
#include "ops/half_kernels.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

inline std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Exponent and fraction move to their places in a float; the product with 2^112 corrects the bias
// and makes subnormals normal.
inline float widened(std::uint16_t half) {
  const std::uint32_t size = half & 0x7fffu;
  const std::uint32_t finite = bits_of(float_of(size << 13) * 0x1p112f);
  const std::uint32_t quiet = size > 0x7c00u ? 0x400000u : 0u;
  const std::uint32_t special = 0x7f800000u | (size << 13) | quiet;
  return float_of((size < 0x7c00u ? finite : special) |
                  (static_cast<std::uint32_t>(half & 0x8000u) << 16));
}

// Rounds to nearest even: for normal results by an integer addition that carries into the exponent,
// for subnormal ones by a float addition that aligns the result's last bit with the float's.
inline std::uint16_t narrowed(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t size = bits & 0x7fffffffu;
  const std::uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal = bits_of(float_of(size) + 0.5f) - 0x3f000000u;
  std::uint32_t result = size < 0x38800000u ? subnormal : normal;
  result = size >= 0x47800000u ? 0x7c00u : result;
  result = size > 0x7f800000u ? (0x7e00u | ((size >> 13) & 0x3ffu)) : result;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000u));
}

inline std::uint16_t narrowed_bfloat(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

void f16_to_f32(const void* x, float* __restrict y, std::int64_t n) {
  const auto* __restrict from = static_cast<const std::uint16_t*>(x);
  std::int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    __m256i halves;
    __builtin_memcpy(&halves, from + i, sizeof halves);
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(halves));
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    __m128i halves;
    __builtin_memcpy(&halves, from + i, sizeof halves);
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(halves));
  }
#endif
  for (; i < n; ++i) y[i] = widened(from[i]);
}

void bf16_to_f32(const void* x, float* __restrict y, std::int64_t n) {
  const auto* __restrict from = static_cast<const std::uint16_t*>(x);
  for (std::int64_t i = 0; i < n; ++i) y[i] = float_of(static_cast<std::uint32_t>(from[i]) << 16);
}

void f32_to_f16(const float* __restrict x, void* y, std::int64_t n) {
  auto* __restrict to = static_cast<std::uint16_t*>(y);
  std::int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i halves =
        _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __builtin_memcpy(to + i, &halves, sizeof halves);
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __builtin_memcpy(to + i, &halves, sizeof halves);
  }
#endif
  for (; i < n; ++i) to[i] = narrowed(x[i]);
}

void f32_to_bf16(const float* __restrict x, void* y, std::int64_t n) {
  auto* __restrict to = static_cast<std::uint16_t*>(y);
  for (std::int64_t i = 0; i < n; ++i) to[i] = narrowed_bfloat(x[i]);
}

}  // namespace

constinit const HalfKernels half_kernels{.f16_to_f32 = f16_to_f32,
                                         .bf16_to_f32 = bf16_to_f32,
                                         .f32_to_f16 = f32_to_f16,
                                         .f32_to_bf16 = f32_to_bf16};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
