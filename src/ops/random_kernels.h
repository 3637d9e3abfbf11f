// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/isa.h"

namespace lockstep {

// Where an op draws from: block i is Philox of counter + i.
struct PhiloxStream {
  std::uint64_t seed, stream, counter;
};

// Each fills `blocks` x 4 elements: element 4 i + k comes from word k of block i (of normal: from
// words k and k ^ 1).
struct RandomKernels {
  void (*words)(const PhiloxStream& from, std::uint32_t* y, std::int64_t blocks);
  // What rounds up to `high` becomes `below`, the number before it.
  void (*uniform)(const PhiloxStream& from, float low, float high, float below, float* y,
                  std::int64_t blocks);
  void (*normal)(const PhiloxStream& from, float mean, float stddev, float* y, std::int64_t blocks);
  void (*truncated_normal)(const PhiloxStream& from, float mean, float stddev, float* y,
                           std::int64_t blocks);
  // 1 where the word is at most `last`, else 0.
  void (*bernoulli)(const PhiloxStream& from, std::uint32_t last, std::uint8_t* y,
                    std::int64_t blocks);
};

LOCKSTEP_ISA_TABLE(RandomKernels, random_kernels);

}  // namespace lockstep
