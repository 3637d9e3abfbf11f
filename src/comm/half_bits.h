// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

// Conversions of 16-bit floats without branches, so that loops over them become vector code under
// any instruction set. Values as in base/half.h; a NaN becomes the quiet NaN with the operand's
// sign.

// yes ? a : b, by masks: compilers turn ?: around float arithmetic back into branches.
inline std::uint32_t select(bool yes, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(yes);
  return (a & mask) | (b & ~mask);
}

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);  // to nearest, ties to even
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(select(nan, sign | 0x7fc00000u, rounded) >> 16);
}

// An f16 moved to the high end of a float's mantissa and the low end of its exponent is the same
// number times 2^-112, subnormals included.
inline float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const float magnitude =
      std::bit_cast<float>((static_cast<std::uint32_t>(bits) & 0x7fffu) << 13) * 0x1p112f;
  const auto shifted = std::bit_cast<std::uint32_t>(magnitude);
  const bool special = (bits & 0x7c00u) == 0x7c00u;  // infinity or NaN keep their mantissa
  return std::bit_cast<float>(shifted | select(special, 0x7f800000u, 0) | sign);
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
  const std::uint32_t special = select(size > 0x7f800000u, 0x7e00u, 0x7c00u);
  const std::uint32_t finite = select(size < (113u << 23), subnormal, normal);
  const std::uint32_t result = select(size >= (143u << 23), special, finite);
  return static_cast<std::uint16_t>(result | (sign >> 16));
}

}  // namespace lockstep
