// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/random_scope.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>

#include "ops/random_kernels.h"

// What random ops draw with; the numbers that each gives are part of its contract.
namespace lockstep {

inline constexpr std::int64_t kChunk = 256;  // blocks that are held on the stack

inline std::int64_t blocks_for(std::int64_t words) { return (words + 3) / 4; }

// Reserves so many words of the thread's random state.
inline PhiloxStream draw(std::int64_t words) {
  RandomState& state = current_random_state();
  const PhiloxStream from{.seed = state.seed, .stream = state.stream, .counter = state.counter};
  state.counter += static_cast<std::uint64_t>(blocks_for(words));
  return from;
}

// Calls use(values, first element, count) with the stream's elements in order, `per_block` of each
// block, which produce(stream, values, blocks) makes.
template <class T, class Produce, class Use>
void in_chunks(PhiloxStream from, std::int64_t n, std::int64_t per_block, Produce&& produce,
               Use&& use) {
  T values[4 * kChunk];
  for (std::int64_t i = 0; i < n; i += per_block * kChunk) {
    const std::int64_t count = std::min(per_block * kChunk, n - i);
    produce(from, values, (count + per_block - 1) / per_block);
    use(values, i, count);
    from.counter += kChunk;
  }
}

inline void words_of(const PhiloxStream& from, std::uint32_t* y, std::int64_t blocks) {
  random_kernels().words(from, y, blocks);
}

// The 64 bits of element k, of two words each.
inline std::uint64_t wide_word(const std::uint32_t* words, std::int64_t k) {
  return words[2 * k] | std::uint64_t{words[2 * k + 1]} << 32;
}

// On an accelerator what make() draws on the host, the same numbers on every kind of device.
template <class Make>
Tensor drawn_on_host(Make&& make) {
  const Device device = current_device();
  const DeviceScope host(Device{});
  return copy_to(make(), device);
}

}  // namespace lockstep
