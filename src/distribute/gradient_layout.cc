// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_layout.h"

namespace lockstep {
namespace {

constexpr std::int64_t kAlignment = 64;  // bytes between the starts of gradients

std::int64_t aligned(std::int64_t elements, DType dtype) {
  const auto step = kAlignment / static_cast<std::int64_t>(size_of(dtype));
  return (elements + step - 1) / step * step;
}

}  // namespace

GradientLayout::GradientLayout(std::span<const Variable> variables,
                               std::span<const std::int64_t> order, const Packing& packing)
    : slots(variables.size()) {
  for (const std::int64_t i : order)
    if (i < 0) by_rows.push_back(static_cast<std::size_t>(~i));
  for (const std::size_t i : by_rows) slots[i].by_rows = true;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::size_t> members;
    for (const std::int64_t i : order)
      if (i >= 0 && variables[static_cast<std::size_t>(i)].dtype() == dtype)
        members.push_back(static_cast<std::size_t>(i));
    if (members.empty()) continue;
    Arena arena{.dtype = dtype};
    std::vector<std::int64_t> bytes;
    for (const std::size_t i : members) {
      slots[i] = {arenas.size(), arena.elements, variables[i].num_elements(), 0};
      const std::int64_t extent = aligned(variables[i].num_elements(), dtype);
      arena.elements += extent;
      bytes.push_back(extent * static_cast<std::int64_t>(size_of(dtype)));
    }
    for (const Bucket& bucket : packing.group(bytes)) {
      const std::int64_t begin = slots[members[bucket.begin]].offset;
      const std::int64_t end =
          bucket.end < members.size() ? slots[members[bucket.end]].offset : arena.elements;
      for (std::size_t m = bucket.begin; m < bucket.end; ++m)
        slots[members[m]].bucket = buckets.size();
      buckets.push_back({arenas.size(), begin, end - begin, bucket.end - bucket.begin});
    }
    arenas.push_back(arena);
  }
}

}  // namespace lockstep
