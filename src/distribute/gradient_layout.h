// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/bucket.h>
#include <lockstep/replica/variable.h>

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Where the gradients of a list of variables stand in flat arenas, one per dtype, and how these are
// cut into buckets: contiguous ranges of an arena that are reduced by one collective each. Gradients
// that are reduced by rows stand in no arena.
struct GradientLayout {
  struct Slot {  // of one variable
    std::size_t arena = 0;
    std::int64_t offset = 0;  // in elements
    std::int64_t count = 0;
    std::size_t bucket = 0;
    bool by_rows = false;  // the rest means nothing then
  };
  struct Arena {
    DType dtype;
    std::int64_t elements = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(elements) * size_of(dtype); }
  };
  struct Range {  // of one bucket
    std::size_t arena = 0;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::size_t num_variables = 0;
  };
  std::vector<Slot> slots;
  std::vector<Arena> arenas;
  std::vector<Range> buckets;
  std::vector<std::size_t> by_rows;  // variables

  // Gradients stand in the order in which they become ready, given as a permutation of the
  // variables' indices; ~i stands for a variable i whose gradient is reduced by rows.
  GradientLayout(std::span<const Variable> variables, std::span<const std::int64_t> order,
                 const Packing& packing);
};

}  // namespace lockstep
