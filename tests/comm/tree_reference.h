// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace lockstep::testing {

// The canonical sum, one element at a time, as tree_sum.h defines it.
template <class T>
T tree_reference(std::span<const T> values) {
  if (values.size() == 1) return values[0];
  std::size_t left = 1;
  while (left * 2 < values.size()) left *= 2;
  const T a = tree_reference(values.first(left)), b = tree_reference(values.subspan(left));
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

// Values of rank `rank`, of sizes so different that another order of summation gives other bits.
template <class T>
std::vector<T> random_values(int rank, std::int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed * 1000 + static_cast<unsigned>(rank));
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      values.push_back(static_cast<T>(random()));
    } else {
      const auto mantissa = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
      values.push_back(T(std::ldexp(mantissa, static_cast<int>(random() % 12))));
    }
  }
  return values;
}

template <class T>
std::vector<T> reference_sum(int ranks, std::int64_t count, unsigned seed = 1) {
  std::vector<std::vector<T>> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(random_values<T>(rank, count, seed));
  std::vector<T> out(static_cast<std::size_t>(count)), column(inputs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) column[rank] = inputs[rank][i];
    out[i] = tree_reference(std::span<const T>(column));
  }
  return out;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace lockstep::testing
