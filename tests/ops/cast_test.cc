// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>

#include <bit>
#include <limits>

#include "ops/every_isa.h"
#include "ops/half_kernels.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

constexpr DType kAll[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                          DType::i32, DType::i64, DType::u8,  DType::boolean};

TEST(Cast, KeepsSmallNumbersBetweenAllPairs) {
  const Tensor x = vec<double>({0, 1, 1});
  for (const DType from : kAll)
    for (const DType to : kAll) {
      const Tensor y = cast(cast(x, from), to);
      EXPECT_EQ(y.dtype(), to);
      EXPECT_THAT(cast(y, DType::f64), holds<double>({0, 1, 1}))
          << name_of(from) << " to " << name_of(to);
    }
}

// Enough of them for whole vectors, blocks of halves, and what is left.
TEST(Cast, KeepsManyWholeNumbersBetweenAllPairs) {
  std::vector<double> values;
  for (int i = 0; i < 2100; ++i) values.push_back(i % 129);
  const Tensor x(Shape{2100}, std::span<const double>(values));
  std::vector<double> flags;
  for (const double value : values) flags.push_back(value != 0);
  for (const DType from : kAll)
    for (const DType to : kAll) {
      const bool boolean = from == DType::boolean || to == DType::boolean;
      EXPECT_THAT(cast(cast(cast(x, from), to), DType::f64),
                  holds<double>(boolean ? flags : values))
          << name_of(from) << " to " << name_of(to);
    }
}

TEST(Cast, ToTheSameDtypeIsTheTensorItself) {
  const Tensor x = vec<float>({1});
  EXPECT_EQ(cast(x, DType::f32).key(), x.key());
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const Tensor x = vec<float>({-2.9f, 2.9f, 3e9f, -3e9f, INFINITY, -INFINITY, NAN});
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(cast(x, DType::i32), holds<std::int32_t>({-2, 2, kMax, kMin, kMax, kMin, 0}));
  EXPECT_THAT(cast(x, DType::u8), holds<std::uint8_t>({0, 2, 255, 0, 255, 0, 0}));
  EXPECT_THAT(cast(vec<double>({1e19, -1e19, 9007199254740993.0}), DType::i64),
              holds<std::int64_t>({std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min(), 9007199254740992}));
  EXPECT_THAT(cast(vec<double>({2147483647.0, 2147483648.0}), DType::i32),
              holds<std::int32_t>({kMax, kMax}));
}

TEST(Cast, IntegerToIntegerWrapsAround) {
  EXPECT_THAT(cast(vec<std::int32_t>({-1, 256, 300}), DType::u8),
              holds<std::uint8_t>({255, 0, 44}));
  EXPECT_THAT(cast(vec<std::int64_t>({(std::int64_t{1} << 32) + 5}), DType::i32),
              holds<std::int32_t>({5}));
}

TEST(Cast, ToBooleanAsksForNotZero) {
  EXPECT_THAT(cast(vec<float>({0, -0.0f, 0.5f, NAN}), DType::boolean),
              holds<bool>({false, false, true, true}));
  EXPECT_THAT(cast(vec<std::int32_t>({0, 256}), DType::boolean), holds<bool>({false, true}));
}

TEST(Cast, ShapesAreKeptAndEmptyIsFine) {
  EXPECT_EQ(cast(Noise(1).tensor<float>({2, 3}), DType::bf16).shape(), (Shape{2, 3}));
  EXPECT_EQ(cast(Noise(1).tensor<float>({0, 3}), DType::i32).shape(), (Shape{0, 3}));
}

TEST(Cast, GradientIsCastBack) {
  const Tensor x = vec<double>({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.gradient(square(cast(x, DType::f32)), {x})[0];
  EXPECT_THAT(gradient, holds<double>({2, 4, 6}));
}

TEST(Cast, NoGradientFlowsThroughIntegers) {
  const Tensor x = vec<float>({1.5f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_FALSE(tape.gradient(cast(cast(x, DType::i32), DType::f32), {x})[0].defined());
}

TEST(StopGradient, KeepsTheValueOnly) {
  const Tensor x = vec<double>({3});
  GradientTape tape;
  tape.watch(x);
  const Tensor still = stop_gradient(x);
  EXPECT_EQ(still.raw_data(), x.raw_data());
  EXPECT_THAT(tape.gradient(x * still, {x})[0], holds<double>({3}));
}

// The bulk conversions against half.h, over all 16-bit values and over float bit patterns of all
// sizes.
TEST(HalfKernels, GiveTheBitsOfHalf) {
  const IsaGuard guard;
  for (const Isa isa : runnable_isas()) {
    set_isa(isa);
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    half_kernels().f16_to_f32(all.data(), wide.data(), 65536);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto expected = static_cast<float>(std::bit_cast<half>(all[i]));
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(wide[i]));
      else
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(expected))
            << i;
    }
    half_kernels().bf16_to_f32(all.data(), wide.data(), 65536);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), static_cast<std::uint32_t>(i) << 16);
  }
}

TEST(HalfKernels, RoundLikeHalf) {
  const IsaGuard guard;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  // Halfway cases: every half and its neighbour, their middle, and a hair to both sides.
  for (std::uint32_t i = 0; i < 0x7c00; ++i) {
    const auto low = static_cast<float>(std::bit_cast<half>(static_cast<std::uint16_t>(i)));
    const auto high =
        i == 0x7bff ? 65536.0f
                    : static_cast<float>(std::bit_cast<half>(static_cast<std::uint16_t>(i + 1)));
    const float middle = (low + high) / 2;
    for (const float value :
         {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e30f)}) {
      x.push_back(value);
      x.push_back(-value);
    }
  }
  const auto n = static_cast<std::int64_t>(x.size());
  for (const Isa isa : runnable_isas()) {
    set_isa(isa);
    std::vector<std::uint16_t> f16(x.size()), bf16(x.size());
    half_kernels().f32_to_f16(x.data(), f16.data(), n);
    half_kernels().f32_to_bf16(x.data(), bf16.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(std::bit_cast<half>(f16[i]))));
        ASSERT_TRUE(std::isnan(static_cast<float>(std::bit_cast<bfloat16>(bf16[i]))));
      } else {
        ASSERT_EQ(f16[i], half(x[i]).bits) << x[i];
        ASSERT_EQ(bf16[i], bfloat16(x[i]).bits) << x[i];
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
