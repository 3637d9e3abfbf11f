// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <cstdint>

namespace lockstep {

// IEEE 754 binary16 and bfloat16 as storage: arithmetic happens in float. Conversion from float
// rounds to nearest even, keeps infinities and NaNs (quietened), and overflows to infinity; the
// bits equal those of CUDA's __half and __nv_bfloat16.
struct LOCKSTEP_EXPORT half {
  std::uint16_t bits = 0;

  half() = default;
  explicit half(float value);
  explicit operator float() const;
  friend bool operator==(half a, half b) { return static_cast<float>(a) == static_cast<float>(b); }
};

struct LOCKSTEP_EXPORT bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
  friend bool operator==(bfloat16 a, bfloat16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

}  // namespace lockstep
