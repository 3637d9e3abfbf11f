// SPDX-License-Identifier: Apache-2.0
#include "ops/math.h"
#include "ops/random_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

constexpr int kBatch = 64;  // blocks at a time, one word of each in a row, so that loops vectorise

struct Batch {
  std::uint32_t words[4][kBatch];
};

// Philox 4x32-10: ten rounds of two multiplications, the key advanced by Weyl constants in between.
void philox(const PhiloxStream& from, std::int64_t first, Batch& batch) {
  std::uint32_t x0[kBatch], x1[kBatch], x2[kBatch], x3[kBatch];
  const std::uint64_t counter = from.counter + static_cast<std::uint64_t>(first);
  for (int i = 0; i < kBatch; ++i) {
    const std::uint64_t own = counter + static_cast<std::uint64_t>(i);
    x0[i] = static_cast<std::uint32_t>(own);
    x1[i] = static_cast<std::uint32_t>(own >> 32);
    x2[i] = static_cast<std::uint32_t>(from.stream);
    x3[i] = static_cast<std::uint32_t>(from.stream >> 32);
  }
  auto key0 = static_cast<std::uint32_t>(from.seed);
  auto key1 = static_cast<std::uint32_t>(from.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBatch; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * x0[i];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * x2[i];
      x0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ x1[i] ^ key0;
      x2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ x3[i] ^ key1;
      x1[i] = static_cast<std::uint32_t>(p1);
      x3[i] = static_cast<std::uint32_t>(p0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  __builtin_memcpy(batch.words[0], x0, sizeof x0);
  __builtin_memcpy(batch.words[1], x1, sizeof x1);
  __builtin_memcpy(batch.words[2], x2, sizeof x2);
  __builtin_memcpy(batch.words[3], x3, sizeof x3);
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
