// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "data/helpers.h"

namespace lockstep::data {

// A dataset written down: all elements of an epoch at once, by the definitions and nothing else.
// The shuffle follows the algorithm documented in src/data/random.h, written anew.
namespace reference {

using Elements = std::vector<Integers>;

inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Draws below `bound` by long division: floor(x * bound / 2^32) with the x that would bias it
// refused.
struct Dice {
  std::uint64_t state;
  Dice(std::uint64_t seed, std::uint64_t epoch) {
    constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15u;
    state = mix(mix(seed + kGamma) + epoch + kGamma);
  }
  std::size_t draw(std::uint64_t bound) {
    for (;;) {
      state += 0x9E3779B97F4A7C15u;
      const std::uint64_t scaled = (mix(state) >> 32) * bound;
      if (scaled % (std::uint64_t{1} << 32) >= (std::uint64_t{1} << 32) % bound)
        return static_cast<std::size_t>(scaled / (std::uint64_t{1} << 32));
    }
  }
};

inline Elements shuffled(const Elements& in, std::int64_t buffer_size, std::uint64_t seed,
                         std::uint64_t epoch) {
  Dice dice(seed, epoch);
  Elements buffer, out;
  std::size_t read = 0;
  for (;;) {
    while (read < in.size() && (buffer_size == 0 || std::ssize(buffer) < buffer_size))
      buffer.push_back(in[read++]);
    if (buffer.empty()) return out;
    const std::size_t drawn = dice.draw(buffer.size());
    out.push_back(buffer[drawn]);
    buffer[drawn] = buffer.back();
    buffer.pop_back();
  }
}

inline Elements batched(const Elements& in, std::int64_t size, bool drop_remainder) {
  Elements out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i % static_cast<std::size_t>(size) == 0) out.emplace_back();
    out.back().insert(out.back().end(), in[i].begin(), in[i].end());
  }
  if (drop_remainder && in.size() % static_cast<std::size_t>(size) != 0) out.pop_back();
  return out;
}

}  // namespace reference
}  // namespace lockstep::data
