// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

// Conversions of 16-bit floats without branches, so that loops over them become vector code under
// any instruction set. Values as in base/half.h; a NaN becomes the quiet NaN with the operand's
// sign.

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);  // to nearest, ties to even
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>((nan ? sign | 0x7fc00000u : rounded) >> 16);
}

// An f16 moved to the high end of a float's mantissa and the low end of its exponent is the same
// number times 2^-112, subnormals included.
inline float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const float magnitude =
      std::bit_cast<float>((static_cast<std::uint32_t>(bits) & 0x7fffu) << 13) * 0x1p112f;
  const auto shifted = std::bit_cast<std::uint32_t>(magnitude);
  const bool special = (bits & 0x7c00u) == 0x7c00u;  // infinity or NaN keep their mantissa
  return std::bit_cast<float>((special ? shifted | 0x7f800000u : shifted) | sign);
}

inline std::uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t size = bits ^ sign;
  // Normal results: move the exponent's bias from 127 to 15 and round off 13 bits, ties to even.
  const std::uint32_t normal = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13;
  // Subnormal results: in 0.5 + x the last 10 bits of the mantissa are x in units of 2^-24,
  // rounded.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  std::uint32_t result = size < (113u << 23) ? subnormal : normal;
  result = size >= (143u << 23) ? special : result;
  return static_cast<std::uint16_t>(result | (sign >> 16));
}

}  // namespace lockstep
