// SPDX-License-Identifier: Apache-2.0
// What the benchmarks compute on: random, as zeros would be faster.
#pragma once

#include <lockstep/tensor/factory.h>

#include <cstdint>
#include <random>
#include <span>

namespace benchmark {

namespace ls = lockstep;

inline constexpr std::int64_t kRows = 128;  // of each replica
inline constexpr std::int64_t kClasses = 10;

inline ls::Tensor random_floats(const ls::Shape& shape, std::uint32_t seed, float low = 0,
                                float high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(low, high);
  return ls::make_tensor<float>(shape, [&](std::span<float> values) {
    for (float& value : values) value = any(random);
  });
}

inline ls::Tensor random_labels(std::int64_t rows, std::int64_t classes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> any(0, classes - 1);
  return ls::make_tensor<std::int64_t>({rows}, [&](std::span<std::int64_t> values) {
    for (std::int64_t& value : values) value = any(random);
  });
}

}  // namespace benchmark
