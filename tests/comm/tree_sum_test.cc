// SPDX-License-Identifier: Apache-2.0
#include "comm/tree_sum.h"

#include <gtest/gtest.h>
#include <lockstep/base/error.h>

#include <bit>
#include <limits>

#include "comm/half_bits.h"
#include "comm/tree_reference.h"

namespace lockstep::testing {
namespace {

std::vector<SumIsa> isas() {
  std::vector<SumIsa> all{SumIsa::baseline};
  if (best_sum_isa() >= SumIsa::avx2) all.push_back(SumIsa::avx2);
  if (best_sum_isa() >= SumIsa::avx512) all.push_back(SumIsa::avx512);
  return all;
}

template <class T>
class TreeSum : public ::testing::Test {};
using Elements =
    ::testing::Types<float, double, half, bfloat16, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(TreeSum, Elements);

TYPED_TEST(TreeSum, HasTheBitsOfTheReferenceUnderEveryIsa) {
  using T = TypeParam;
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17})
    for (const std::int64_t count : {1, 5, 64, 3001}) {
      constexpr std::int64_t kOffset = 3;
      const std::vector<T> whole = reference_sum<T>(n, count + kOffset);
      const std::vector<T> expected(whole.begin() + kOffset, whole.end());
      std::vector<std::vector<T>> inputs;
      std::vector<const void*> pointers;
      for (int k = 0; k < n; ++k) inputs.push_back(random_values<T>(k, count + kOffset));
      for (const auto& input : inputs) pointers.push_back(input.data());
      for (const SumIsa isa : isas()) {
        std::vector<T> out(expected.size());
        tree_sum(dtype_of<T>, pointers, kOffset, out.data(), count, isa);
        EXPECT_TRUE(same_bits<T>(out, expected))
            << n << " inputs of " << count << ", isa " << static_cast<int>(isa);
      }
    }
}

TYPED_TEST(TreeSum, MayWriteOverAnyOfItsInputs) {
  using T = TypeParam;
  constexpr std::int64_t kCount = 3001;
  for (const int n : {2, 3, 4, 7})
    for (int target = 0; target < n; ++target)
      for (const SumIsa isa : isas()) {
        std::vector<std::vector<T>> inputs;
        std::vector<const void*> pointers;
        for (int k = 0; k < n; ++k) inputs.push_back(random_values<T>(k, kCount));
        for (const auto& input : inputs) pointers.push_back(input.data());
        auto& out = inputs[static_cast<std::size_t>(target)];
        tree_sum(dtype_of<T>, pointers, 0, out.data(), kCount, isa);
        EXPECT_TRUE(same_bits<T>(out, reference_sum<T>(n, kCount)))
            << n << " inputs, over " << target;
      }
}

TEST(TreeSum, FollowsTheTreeAndNotTheListOrder) {
  // 1e8 + 1 loses the 1 in float: (1e8 + -1e8) + (1 + 1) keeps both, from left to right one is
  // lost.
  const float a = 1, b = 1e8F, c = -1e8F, d = 1;
  const std::vector<const void*> tree{&b, &c, &a, &d}, other{&a, &b, &c, &d};
  float out = 0;
  tree_sum(DType::f32, tree, 0, &out, 1);
  EXPECT_EQ(out, 2);
  tree_sum(DType::f32, other, 0, &out, 1);
  EXPECT_EQ(out, 0);
}

TEST(TreeSum, KeepsInfinitiesAndNaNs) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> a(9, kInf), b{1, -kInf, kInf, 1, 1, 1, 1, 1, 1};
  for (const SumIsa isa : isas()) {
    std::vector<float> out(9);
    const std::vector<const void*> inputs{a.data(), b.data()};
    tree_sum(DType::f32, inputs, 0, out.data(), 9, isa);
    EXPECT_EQ(out[0], kInf);
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_EQ(out[2], kInf);
  }
}

TEST(TreeSum, RefusesBool) {
  bool x = true;
  const std::vector<const void*> inputs{&x};
  EXPECT_THROW(tree_sum(DType::boolean, inputs, 0, &x, 1), InternalError);
}

TEST(HalfBits, EveryF16AndBf16HasTheValueOfBase) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    half h;
    bfloat16 b;
    h.bits = b.bits = static_cast<std::uint16_t>(bits);
    const auto fh = static_cast<float>(h), fb = static_cast<float>(b);
    if (std::isnan(fh)) {
      EXPECT_TRUE(std::isnan(float_from_f16(h.bits)));
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(float_from_f16(h.bits)),
                std::bit_cast<std::uint32_t>(fh));
      EXPECT_EQ(f16_from_float(fh), h.bits);
    }
    if (std::isnan(fb)) {
      EXPECT_TRUE(std::isnan(float_from_bf16(b.bits)));
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(float_from_bf16(b.bits)),
                std::bit_cast<std::uint32_t>(fb));
      EXPECT_EQ(bf16_from_float(fb), b.bits);
    }
  }
}

TEST(HalfBits, FloatsAreRoundedAsInBase) {
  std::uint32_t bits = 1;
  for (int i = 0; i < 2'000'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    // Half of the floats in f16's range and around the ends of it.
    const std::uint32_t near = (bits & 0x807fffffu) | ((95u + (bits >> 8) % 52u) << 23);
    const auto value = std::bit_cast<float>(i % 2 ? bits : near);
    if (std::isnan(value)) {
      ASSERT_EQ(f16_from_float(value) & 0x7fffu, 0x7e00u);
      ASSERT_EQ(bf16_from_float(value) & 0x7fffu, 0x7fc0u);
    } else {
      ASSERT_EQ(f16_from_float(value), half(value).bits) << value;
      ASSERT_EQ(bf16_from_float(value), bfloat16(value).bits) << value;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
