// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/half.h>

#include <Eigen/Core>

#include <bit>

namespace lockstep {

half::half(float value) : bits(std::bit_cast<std::uint16_t>(Eigen::half(value))) {}
half::operator float() const { return static_cast<float>(std::bit_cast<Eigen::half>(bits)); }

bfloat16::bfloat16(float value) : bits(std::bit_cast<std::uint16_t>(Eigen::bfloat16(value))) {}
bfloat16::operator float() const {
  return static_cast<float>(std::bit_cast<Eigen::bfloat16>(bits));
}

}  // namespace lockstep
