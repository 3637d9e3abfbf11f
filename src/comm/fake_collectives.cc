// SPDX-License-Identifier: Apache-2.0
#include "comm/fake_collectives.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "comm/tree_sum.h"

namespace lockstep {
namespace {

using Counts = std::vector<std::int64_t>;  // elements of each rank's input to an all_gather

std::size_t bytes_of(const CollectiveCall& call, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * size_of(call.dtype);
}

// The sum of all inputs, in an order that depends on the call.
std::vector<std::byte> summed(const CollectiveCall& call,
                              std::span<const fake::Contribution> by_rank) {
  std::vector<const void*> inputs;
  for (const auto& rank : by_rank) inputs.push_back(rank.in);
  const std::size_t turn = std::hash<std::int64_t>()(call.sequence + call.count) % inputs.size();
  std::rotate(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(turn), inputs.end());
  std::vector<std::byte> sum(bytes_of(call, call.count));
  tree_sum(call.dtype, inputs, 0, sum.data(), call.count);
  if (call.op == ReduceOp::mean)
    divide(call.dtype, sum.data(), call.count, static_cast<int>(inputs.size()));
  return sum;
}

void gather(const CollectiveCall& call, const Counts& counts,
            std::span<const fake::Contribution> by_rank) {
  std::vector<std::byte> whole;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto* const part = static_cast<const std::byte*>(by_rank[rank].in);
    whole.insert(whole.end(), part, part + bytes_of(call, counts[rank]));
  }
  for (const auto& rank : by_rank)
    if (!whole.empty()) std::memcpy(rank.out, whole.data(), whole.size());
}

void work(const CollectiveCall& call, const Counts& counts,
          std::span<const fake::Contribution> by_rank) {
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    if (bytes) std::memmove(to, from, bytes);
  };
  switch (call.kind) {
    case CollectiveKind::all_reduce: {
      const auto sum = summed(call, by_rank);
      for (const auto& rank : by_rank) copy(rank.out, sum.data(), sum.size());
      return;
    }
    case CollectiveKind::reduce_scatter: {
      const auto sum = summed(call, by_rank);
      const std::size_t part = sum.size() / by_rank.size();
      for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
        copy(by_rank[rank].out, sum.data() + rank * part, part);
      return;
    }
    case CollectiveKind::all_gather:
      return gather(call, counts, by_rank);
    case CollectiveKind::broadcast: {
      const void* const from = by_rank[static_cast<std::size_t>(call.root)].in;
      for (const auto& rank : by_rank) copy(rank.out, from, bytes_of(call, call.count));
      return;
    }
    case CollectiveKind::barrier:
      return;
  }
}

}  // namespace

void FakeCollectives::put(int rank, const CollectiveCall& call, const void* in, void* out,
                          std::span<const std::int64_t> counts, const Stream& stream) {
  const std::size_t size = group_->issued.size();
  Counts each(size, call.count);
  if (!counts.empty()) each.assign(counts.begin(), counts.end());
  const std::int64_t own = each[static_cast<std::size_t>(rank)];
  const std::int64_t total = std::accumulate(each.begin(), each.end(), std::int64_t{0});
  const bool gathers = call.kind == CollectiveKind::all_gather;
  const bool scatters = call.kind == CollectiveKind::reduce_scatter;
  const std::int64_t written = gathers    ? total
                               : scatters ? call.count / static_cast<std::int64_t>(size)
                                          : call.count;
  const MemoryRange reads{in, bytes_of(call, gathers ? own : call.count)};
  const MemoryRange writes{out, bytes_of(call, written)};
  const std::string text = call.to_string();
  fake::runtime().meet(
      fake::queue_of(stream), group_, rank, {text, in, out},
      {.name = text, .reads = {&reads, 1}, .writes = {&writes, 1}},
      [call, each](std::span<const fake::Contribution> by_rank) { work(call, each, by_rank); });
}

}  // namespace lockstep
