// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>

namespace lockstep {

// The highest bit of a key tells the value of a mirrored variable from all other tensors, so that a
// worker knows it by one component alone. new_tensor_key() counts from 1 and never sets it.
inline constexpr std::uint64_t kMirroredKey = std::uint64_t{1} << 63;

inline std::uint64_t new_mirrored_key() noexcept { return new_tensor_key() | kMirroredKey; }
inline bool is_mirrored(const Tensor& value) noexcept {
  return value.defined() && (value.key() & kMirroredKey) != 0;
}

}  // namespace lockstep
