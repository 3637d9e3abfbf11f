// SPDX-License-Identifier: Apache-2.0
#include "comm/tree_sum.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "comm/half_bits.h"

// The next loop carries no dependence from one iteration to another, though ranges may be the same.
#if defined(__clang__)
#define LOCKSTEP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace lockstep {
namespace {

constexpr std::int64_t kBlockBytes = 4096;  // partial sums of wide trees stay in L1
constexpr std::size_t kLeafInputs = 4;  // inputs that one loop adds without storing partial sums

struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

// An element at any address, as what comes from a socket is.
template <class T>
struct [[gnu::packed]] Anywhere {
  T value;
};

inline float add(float a, float b) { return a + b; }
inline double add(double a, double b) { return a + b; }
inline std::uint8_t add(std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a + b); }
inline std::uint32_t add(std::uint32_t a, std::uint32_t b) { return a + b; }
inline std::uint64_t add(std::uint64_t a, std::uint64_t b) { return a + b; }
inline F16 add(F16 a, F16 b) {
  return {f16_from_float(float_from_f16(a.bits) + float_from_f16(b.bits))};
}
inline Bf16 add(Bf16 a, Bf16 b) {
  return {bf16_from_float(float_from_bf16(a.bits) + float_from_bf16(b.bits))};
}

// out = tree of in[0..n), n <= kLeafInputs.
template <class T>
[[gnu::always_inline]] inline void sum_leaf(const Anywhere<T>* const* in, std::size_t n, T* out,
                                            std::int64_t count) {
  const Anywhere<T>*a = in[0], *b = in[std::min(n - 1, std::size_t{1})];
  const Anywhere<T>*c = in[std::min(n - 1, std::size_t{2})], *d = in[n - 1];
  switch (n) {
    case 1:
      if (static_cast<const void*>(out) != a)
        std::memcpy(out, a, static_cast<std::size_t>(count) * sizeof(T));
      break;
    case 2:
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) out[i] = add(a[i].value, b[i].value);
      break;
    case 3:
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i)
        out[i] = add(add(a[i].value, b[i].value), c[i].value);
      break;
    default:
      LOCKSTEP_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i)
        out[i] = add(add(a[i].value, b[i].value), add(c[i].value, d[i].value));
  }
}

template <class T>
using Leaf = void (*)(const Anywhere<T>* const* in, std::size_t n, T* out, std::int64_t count);

// The same loops for each instruction set. Attributes rather than flags, so that nothing else in
// this file is compiled for a CPU that may not be there.
template <class T>
void leaf_baseline(const Anywhere<T>* const* in, std::size_t n, T* out, std::int64_t count) {
  sum_leaf(in, n, out, count);
}
#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2"))) void leaf_avx2(const Anywhere<T>* const* in, std::size_t n, T* out,
                                               std::int64_t count) {
  sum_leaf(in, n, out, count);
}
template <class T>
__attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl"))) void leaf_avx512(
    const Anywhere<T>* const* in, std::size_t n, T* out, std::int64_t count) {
  sum_leaf(in, n, out, count);
}
#endif

template <class T>
Leaf<T> leaf_for([[maybe_unused]] SumIsa isa) {
#if defined(__x86_64__)
  if (isa == SumIsa::avx512) return leaf_avx512<T>;
  if (isa == SumIsa::avx2) return leaf_avx2<T>;
#endif
  return leaf_baseline<T>;
}

// out = tree of inputs at [offset, offset + count). Partial sums go through blocks of their own, as
// `out` may be an input that is still to be read.
template <class T>
void sum_block(Leaf<T> leaf, std::span<const void* const> inputs, std::int64_t offset, T* out,
               std::int64_t count) {
  const std::size_t n = inputs.size();
  if (n <= kLeafInputs) {
    std::array<const Anywhere<T>*, kLeafInputs> in{};
    for (std::size_t k = 0; k < n; ++k) in[k] = static_cast<const Anywhere<T>*>(inputs[k]) + offset;
    leaf(in.data(), n, out, count);
    return;
  }
  const std::size_t left_inputs = std::bit_floor(n - 1);
  alignas(64) std::array<T, kBlockBytes / sizeof(T)> left, right;
  sum_block(leaf, inputs.first(left_inputs), offset, left.data(), count);
  sum_block(leaf, inputs.subspan(left_inputs), offset, right.data(), count);
  const std::array<const Anywhere<T>*, 2> halves{
      reinterpret_cast<const Anywhere<T>*>(left.data()),
      reinterpret_cast<const Anywhere<T>*>(right.data())};
  leaf(halves.data(), halves.size(), out, count);
}

template <class T>
void sum(std::span<const void* const> inputs, std::int64_t offset, void* out, std::int64_t count,
         SumIsa isa) {
  constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t step =
      inputs.size() <= kLeafInputs ? std::max<std::int64_t>(count, 1) : kBlock;
  for (std::int64_t begin = 0; begin < count; begin += step)
    sum_block(leaf_for<T>(isa), inputs, offset + begin, static_cast<T*>(out) + begin,
              std::min(step, count - begin));
}

template <class T, class Divide>
void divide_each(void* data, std::int64_t count, Divide divide_one) {
  T* values = static_cast<T*>(data);
  for (std::int64_t i = 0; i < count; ++i) values[i] = divide_one(values[i]);
}

}  // namespace

SumIsa best_sum_isa() {
#if defined(__x86_64__)
  static const SumIsa best = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return SumIsa::avx512;
    return __builtin_cpu_supports("avx2") ? SumIsa::avx2 : SumIsa::baseline;
  }();
  return best;
#else
  return SumIsa::baseline;
#endif
}

void tree_sum(DType dtype, std::span<const void* const> inputs, std::int64_t offset, void* out,
              std::int64_t count, SumIsa isa) {
  switch (dtype) {
    case DType::f32:
      return sum<float>(inputs, offset, out, count, isa);
    case DType::f64:
      return sum<double>(inputs, offset, out, count, isa);
    case DType::f16:
      return sum<F16>(inputs, offset, out, count, isa);
    case DType::bf16:
      return sum<Bf16>(inputs, offset, out, count, isa);
    case DType::i32:
      return sum<std::uint32_t>(inputs, offset, out, count, isa);
    case DType::i64:
      return sum<std::uint64_t>(inputs, offset, out, count, isa);
    case DType::u8:
      return sum<std::uint8_t>(inputs, offset, out, count, isa);
    case DType::boolean:
      break;
  }
  throw InternalError(message("tree_sum", "no sum for dtype ", name_of(dtype)));
}

void divide(DType dtype, void* data, std::int64_t count, int divisor) {
  const auto narrow = static_cast<float>(divisor);
  const auto wide = static_cast<double>(divisor);
  switch (dtype) {
    case DType::f32:
      return divide_each<float>(data, count, [=](float x) { return x / narrow; });
    case DType::f64:
      return divide_each<double>(data, count, [=](double x) { return x / wide; });
    case DType::f16:
      return divide_each<F16>(
          data, count, [=](F16 x) { return F16{f16_from_float(float_from_f16(x.bits) / narrow)}; });
    case DType::bf16:
      return divide_each<Bf16>(data, count, [=](Bf16 x) {
        return Bf16{bf16_from_float(float_from_bf16(x.bits) / narrow)};
      });
    default:
      throw InternalError(message("divide", "no mean for dtype ", name_of(dtype)));
  }
}

}  // namespace lockstep
