// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::data {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): a
// counter that advances by the golden ratio, and a mixing function of it.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// The random numbers of one epoch of one seed: SplitMix64, started from mix(mix(seed) + epoch).
class EpochRandom {
 public:
  EpochRandom(std::uint64_t seed, std::uint64_t epoch)
      : bits_(SplitMix64(SplitMix64(seed).next() + epoch).next()) {}

  // Uniform in [0, bound), 1 <= bound <= 2^32, without bias (Lemire, "Fast random integer
  // generation in an interval", 2019), from the upper halves of one or more numbers.
  std::uint64_t below(std::uint64_t bound) {
    std::uint64_t product = (bits_.next() >> 32) * bound;
    if ((product & 0xFFFFFFFFu) < bound) {
      const std::uint64_t rejected = (std::uint64_t{1} << 32) % bound;
      while ((product & 0xFFFFFFFFu) < rejected) product = (bits_.next() >> 32) * bound;
    }
    return product >> 32;
  }

 private:
  SplitMix64 bits_;
};

}  // namespace lockstep::data
