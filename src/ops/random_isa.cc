// SPDX-License-Identifier: Apache-2.0
#include "ops/math.h"
#include "ops/random_kernels.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

constexpr int kBatch = 64;  // blocks at a time, one word of each in a row, so that loops vectorise

struct Batch {
  std::uint32_t words[4][kBatch];
};

// So many 64-bit lanes in a register, and so many registers of each word that the others hide how
// long a product takes.
#if defined(__AVX512F__)
constexpr int kLanes = 8, kRegisters = 4;
#elif defined(__AVX2__)
constexpr int kLanes = 4, kRegisters = 2;
#else
constexpr int kLanes = 2, kRegisters = 2;
#endif
typedef std::uint64_t Lanes __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));
typedef std::uint32_t Halves __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

// Of the lower half of each lane. Compilers that do not know the upper one to be 0 multiply thrice.
[[gnu::always_inline]] inline Lanes product(Lanes a, std::uint32_t b) {
  const Lanes all = Lanes{} + b;
#if defined(__AVX512F__)
  return (Lanes)_mm512_mul_epu32((__m512i)a, (__m512i)all);
#elif defined(__AVX2__)
  return (Lanes)_mm256_mul_epu32((__m256i)a, (__m256i)all);
#elif defined(__SSE2__)
  return (Lanes)_mm_mul_epu32((__m128i)a, (__m128i)all);
#else
  return (a & 0xFFFFFFFFu) * all;
#endif
}

[[gnu::always_inline]] inline void store_lower(const Lanes& x, std::uint32_t* y) {
  const Halves lower = __builtin_convertvector(x, Halves);
  __builtin_memcpy(y, &lower, sizeof lower);
}

// Philox 4x32-10: ten rounds of two multiplications, the key advanced by Weyl constants in between.
// A word is the lower half of its lane; above it stands what a round left there.
void philox(const PhiloxStream& from, std::int64_t first, Batch& batch) {
  Lanes place;
  for (int i = 0; i < kLanes; ++i) place[i] = static_cast<std::uint64_t>(i);
  for (int block = 0; block < kBatch; block += kRegisters * kLanes) {
    Lanes x0[kRegisters], x1[kRegisters], x2[kRegisters], x3[kRegisters];
    for (int i = 0; i < kRegisters; ++i) {
      x0[i] = place + (from.counter + static_cast<std::uint64_t>(first + block + i * kLanes));
      x1[i] = x0[i] >> 32;
      x2[i] = Lanes{} + from.stream;
      x3[i] = x2[i] >> 32;
    }
    auto key0 = static_cast<std::uint32_t>(from.seed);
    auto key1 = static_cast<std::uint32_t>(from.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kRegisters; ++i) {
        const Lanes p0 = product(x0[i], 0xD2511F53u), p1 = product(x2[i], 0xCD9E8D57u);
        x0[i] = (p1 >> 32) ^ x1[i] ^ std::uint64_t{key0};
        x2[i] = (p0 >> 32) ^ x3[i] ^ std::uint64_t{key1};
        x1[i] = p1;
        x3[i] = p0;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    for (int i = 0; i < kRegisters; ++i) {
      store_lower(x0[i], batch.words[0] + block + i * kLanes);
      store_lower(x1[i], batch.words[1] + block + i * kLanes);
      store_lower(x2[i], batch.words[2] + block + i * kLanes);
      store_lower(x3[i], batch.words[3] + block + i * kLanes);
    }
  }
}

// Calls transform(batch, y) for batches of 4 x kBatch elements, the last one by way of a copy.
template <class T, class F>
[[gnu::always_inline]] inline void in_batches(const PhiloxStream& from, T* y, std::int64_t blocks,
                                              F&& transform) {
  Batch batch;
  for (std::int64_t i = 0; i < blocks; i += kBatch, y += 4 * kBatch) {
    philox(from, i, batch);
    if (blocks - i >= kBatch) {
      transform(batch, y);
    } else {
      T last[4 * kBatch];
      transform(batch, last);
      __builtin_memcpy(y, last, static_cast<std::size_t>(blocks - i) * 4 * sizeof(T));
    }
  }
}

// Element 4 i + k is transform(word k of block i). In two steps, as compilers do not vectorise a long
// formula and the interleaving at once.
template <class F>
[[gnu::always_inline]] inline void floats_of_words(const PhiloxStream& from, float* y,
                                                   std::int64_t blocks, const F& transform) {
  in_batches(from, y, blocks, [&](const Batch& batch, float* __restrict to) {
    float values[4][kBatch];
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < kBatch; ++i) values[k][i] = transform(batch.words[k][i]);
    for (int i = 0; i < kBatch; ++i)
      for (int k = 0; k < 4; ++k) to[4 * i + k] = values[k][i];
  });
}

void words(const PhiloxStream& from, std::uint32_t* y, std::int64_t blocks) {
  in_batches(from, y, blocks, [](const Batch& batch, std::uint32_t* __restrict to) {
    for (int i = 0; i < kBatch; ++i)
      for (int k = 0; k < 4; ++k) to[4 * i + k] = batch.words[k][i];
  });
}

// The upper 24 bits as a number in [0, 1), exactly.
[[gnu::always_inline]] inline float unit(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

// All 32 bits as a number in (0, 1], fine near 0.
[[gnu::always_inline]] inline float open_unit(std::uint32_t word) {
  return unit(word) +
         (static_cast<float>(static_cast<std::int32_t>(word & 255u)) + 0.5f) * 0x1p-32f;
}

void uniform(const PhiloxStream& from, float low, float high, float below, float* y,
             std::int64_t blocks) {
  const float width = high - low;
  in_batches(from, y, blocks, [=](const Batch& batch, float* __restrict to) {
    for (int i = 0; i < kBatch; ++i)
      for (int k = 0; k < 4; ++k) {
        const float value = low + width * unit(batch.words[k][i]);
        to[4 * i + k] = value < high ? value : below;
      }
  });
}

// Two words to two normal numbers. The angle, a whole turn in 2^32 steps, is a quarter turn by its
// upper two bits and within [-pi/4, pi/4) by the next 24.
[[gnu::always_inline]] inline void box_muller(const std::uint32_t* __restrict a,
                                              const std::uint32_t* __restrict b,
                                              float* __restrict y0, float* __restrict y1) {
  for (int i = 0; i < kBatch; ++i) {
    const float radius = math::sqrt(-2.0f * math::log(open_unit(a[i])));
    const float r = (unit(b[i] << 2) - 0.5f) * 1.57079633f;
    const float s = math::sin_near_zero(r), c = math::cos_near_zero(r);
    const bool odd = (b[i] & 0x40000000u) != 0, back = (b[i] & 0x80000000u) != 0;
    const float sine = odd ? c : s, cosine = odd ? -s : c;
    y0[i] = radius * (back ? -cosine : cosine);
    y1[i] = radius * (back ? -sine : sine);
  }
}

void normal(const PhiloxStream& from, float mean, float stddev, float* y, std::int64_t blocks) {
  in_batches(from, y, blocks, [=](const Batch& batch, float* __restrict to) {
    float z[4][kBatch];
    box_muller(batch.words[0], batch.words[1], z[0], z[1]);
    box_muller(batch.words[2], batch.words[3], z[2], z[3]);
    for (int i = 0; i < kBatch; ++i)
      for (int k = 0; k < 4; ++k) to[4 * i + k] = mean + stddev * z[k][i];
  });
}

// The quantile of the normal distribution between -2 and 2: sqrt(2) erfinv(x), where x is uniform
// within erf(sqrt 2) of 0 and erfinv(x) / x is a polynomial in -log(1 - x^2).
[[gnu::always_inline]] inline float truncated_quantile(std::uint32_t word) {
  const float x = (unit(word) + 0x1p-25f - 0.5f) * 1.9089994722f;
  const float w = -math::log(1.0f - x * x);
  float p = -3.572372123e-7f;
  p = p * w + -1.55962048e-6f;
  p = p * w + 5.467810931e-5f;
  p = p * w + -0.0001374997782f;
  p = p * w + -0.002329246437f;
  p = p * w + 0.01154759257f;
  p = p * w + 0.2320138627f;
  p = p * w + 0.8862269219f;
  return x * p * 1.41421356f;
}

void truncated_normal(const PhiloxStream& from, float mean, float stddev, float* y,
                      std::int64_t blocks) {
  floats_of_words(from, y, blocks,
                  [=](std::uint32_t word) { return mean + stddev * truncated_quantile(word); });
}

void bernoulli(const PhiloxStream& from, std::uint32_t last, std::uint8_t* y, std::int64_t blocks) {
  in_batches(from, y, blocks, [=](const Batch& batch, std::uint8_t* __restrict to) {
    for (int i = 0; i < kBatch; ++i)
      for (int k = 0; k < 4; ++k) to[4 * i + k] = batch.words[k][i] <= last;
  });
}

}  // namespace

constinit const RandomKernels random_kernels{.words = words,
                                             .uniform = uniform,
                                             .normal = normal,
                                             .truncated_normal = truncated_normal,
                                             .bernoulli = bernoulli};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
