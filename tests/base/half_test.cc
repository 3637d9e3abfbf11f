// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lockstep/base/dtype.h>
#include <lockstep/base/half.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace lockstep {
namespace {

// A 16-bit format by its definition: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int largest_exponent() const { return (1 << exponent_bits) - 1; }

  double value_of(std::uint16_t bits) const {
    const int exponent = (bits >> mantissa_bits) & largest_exponent();
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == largest_exponent())
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }

  // Bits of the nearest number, the one with even mantissa of two; numbers of one sign stand in the
  // order of their bits.
  std::uint16_t nearest(double x) const {
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double size = std::fabs(x);
    const int infinity = largest_exponent() << mantissa_bits;
    const double limit = std::ldexp(2 - std::ldexp(1, -mantissa_bits - 1), bias());
    if (size >= limit) return static_cast<std::uint16_t>(sign | infinity);
    int low = 0, high = infinity;  // value(low) <= size < value(high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (value_of(static_cast<std::uint16_t>(middle)) <= size ? low : high) = middle;
    }
    const double below = size - value_of(static_cast<std::uint16_t>(low));
    const double above = high == infinity ? std::ldexp(1, bias() + 1) - size
                                          : value_of(static_cast<std::uint16_t>(high)) - size;
    const int chosen = below < above || (below == above && low % 2 == 0) ? low : high;
    return static_cast<std::uint16_t>(sign | chosen);
  }
};

template <class T>
struct Sixteen;
template <>
struct Sixteen<half> {
  static constexpr Format format{5, 10};
};
template <>
struct Sixteen<bfloat16> {
  static constexpr Format format{8, 7};
};

template <class T>
class SixteenBits : public testing::Test {};
using Types = testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(SixteenBits, Types);

TYPED_TEST(SixteenBits, AllNumbersBecomeTheirFloatAndBack) {
  constexpr Format format = Sixteen<TypeParam>::format;
  for (int bits = 0; bits < 0x10000; ++bits) {
    TypeParam number;
    number.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(number);
    const double expected = format.value_of(number.bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(TypeParam(value).bits, number.bits) << bits;
    }
  }
}

TYPED_TEST(SixteenBits, RoundsToTheNearestEven) {
  constexpr Format format = Sixteen<TypeParam>::format;
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) continue;
    ASSERT_EQ(TypeParam(x).bits, format.nearest(x)) << x;
  }
  // Numbers in the range of the format, and the middles between neighbours.
  for (int bits = 0; bits + 1 < format.largest_exponent() << format.mantissa_bits; bits += 3) {
    const double low = format.value_of(static_cast<std::uint16_t>(bits));
    const double high = format.value_of(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2);
    for (const float x :
         {middle, std::nextafter(middle, 0.f), std::nextafter(middle, INFINITY), -middle})
      ASSERT_EQ(TypeParam(x).bits, format.nearest(x)) << x;
  }
}

TYPED_TEST(SixteenBits, OverflowsToInfinity) {
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), INFINITY);
  EXPECT_EQ(static_cast<float>(TypeParam(-INFINITY)), -INFINITY);
}

TYPED_TEST(SixteenBits, ComparesAsNumbers) {
  EXPECT_EQ(TypeParam(0.f), TypeParam(-0.f));
  EXPECT_NE(TypeParam(NAN), TypeParam(NAN));
  EXPECT_EQ(TypeParam(), TypeParam(0.f));
}

TEST(Half, KnownBits) {
  EXPECT_EQ(half(1.f).bits, 0x3C00);
  EXPECT_EQ(half(65504.f).bits, 0x7BFF);
  EXPECT_EQ(half(65520.f).bits, 0x7C00);
  EXPECT_EQ(half(5.9604645e-8f).bits, 0x0001);
  EXPECT_EQ(bfloat16(1.f).bits, 0x3F80);
  EXPECT_EQ(bfloat16(-2.f).bits, 0xC000);
}

static_assert(size_of(DType::f16) == sizeof(half) && size_of(DType::bf16) == sizeof(bfloat16));
static_assert(size_of(dtype_of<double>) == 8 && size_of(dtype_of<bool>) == 1);
static_assert(name_of(DType::boolean) == "bool" && name_of(dtype_of<std::uint8_t>) == "u8");
static_assert(is_floating(DType::bf16) && !is_floating(DType::i32));
static_assert(is_integer(DType::u8) && !is_integer(DType::boolean) && !is_integer(DType::f64));

}  // namespace
}  // namespace lockstep
