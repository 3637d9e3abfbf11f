// SPDX-License-Identifier: Apache-2.0
#include "comm/collective_work.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/tree_sum.h"

namespace lockstep {
namespace {

// Bytes of a piece. Below the minimum handing work to another core costs more than doing it; above
// the maximum a rank that comes late to help finds too little left to take.
constexpr std::int64_t kMinPiece = std::int64_t{16} << 10;
constexpr std::int64_t kMaxPiece = std::int64_t{64} << 10;
constexpr std::int64_t kCacheLine = 64;
// Bytes that are summed before they are divided or copied on, while they are in the first-level
// cache.
constexpr std::int64_t kBlock = std::int64_t{8} << 10;

}  // namespace

CollectiveWork::CollectiveWork(int ranks)
    : inputs_(static_cast<std::size_t>(ranks)),
      outputs_(static_cast<std::size_t>(ranks)),
      pieces_(ranks) {
  counts_.reserve(inputs_.size());
  targets_.reserve(inputs_.size());
}

void CollectiveWork::open(const CollectiveCall& call, std::span<const std::int64_t> counts) {
  call_ = call;
  counts_.clear();
  if (call.uneven) counts_.assign(counts.begin(), counts.end());
  pieces_.reset();
}

void CollectiveWork::place(int rank, const void* in, void* out) {
  inputs_[static_cast<std::size_t>(rank)] = in;
  outputs_[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(out);
}

void CollectiveWork::deal() {
  const auto ranks = static_cast<std::int64_t>(inputs_.size());
  const bool broadcast = call_.kind == CollectiveKind::broadcast;
  find_targets(broadcast ? inputs_[static_cast<std::size_t>(call_.root)] : nullptr);

  std::int64_t parts = 1, largest = call_.count;
  if (broadcast) parts = static_cast<std::int64_t>(targets_.size());
  if (call_.kind == CollectiveKind::reduce_scatter) parts = ranks, largest = call_.count / ranks;
  if (call_.kind == CollectiveKind::all_gather) {
    parts = ranks;
    if (call_.uneven) largest = *std::ranges::max_element(counts_);
  }

  const auto element = static_cast<std::int64_t>(size_of(call_.dtype));
  const std::int64_t share = (parts * largest * element + ranks - 1) / ranks;
  const std::int64_t rounded = (share + kCacheLine - 1) / kCacheLine * kCacheLine;
  elements_per_piece_ = std::clamp(rounded, kMinPiece, kMaxPiece) / element;
  pieces_per_part_ = (largest + elements_per_piece_ - 1) / elements_per_piece_;
  pieces_dealt_ = parts * pieces_per_part_;
  pieces_.deal(pieces_dealt_);
}

void CollectiveWork::find_targets(const void* except) {
  targets_.clear();
  for (std::byte* output : outputs_)
    if (output != except && std::ranges::find(targets_, output) == targets_.end())
      targets_.push_back(output);
}

void CollectiveWork::do_piece(std::int64_t piece) const {
  const std::int64_t part = piece / pieces_per_part_;
  const std::int64_t begin = piece % pieces_per_part_ * elements_per_piece_;
  const std::int64_t count = std::min(elements_per_piece_, part_count(part) - begin);
  if (count <= 0) return;
  const auto index = static_cast<std::size_t>(part);
  const auto copy = [&](std::byte* to, const void* from) {
    const std::byte* source = static_cast<const std::byte*>(from) + bytes(begin);
    if (to != source) std::memcpy(to, source, bytes(count));
  };
  switch (call_.kind) {
    case CollectiveKind::all_reduce:
      return reduce(targets_, begin, begin, count);
    case CollectiveKind::reduce_scatter:
      return reduce({&outputs_[index], 1}, part * part_count(part) + begin, begin, count);
    case CollectiveKind::all_gather:
      for (std::byte* target : targets_)
        copy(target + bytes(part_offset(part) + begin), inputs_[index]);
      return;
    case CollectiveKind::broadcast:
      return copy(targets_[index] + bytes(begin), inputs_[static_cast<std::size_t>(call_.root)]);
    case CollectiveKind::barrier:
      return;
  }
}

// A block is summed over all inputs before any output but the first is written, and that one may be
// an input only in the same place: so every input is read before it is overwritten.
void CollectiveWork::reduce(std::span<std::byte* const> targets, std::int64_t in_offset,
                            std::int64_t out_offset, std::int64_t count) const {
  const bool plain = targets.size() == 1 && call_.op == ReduceOp::sum;
  const std::int64_t step =
      plain ? count : kBlock / static_cast<std::int64_t>(size_of(call_.dtype));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t now = std::min(step, count - begin);
    std::byte* first = targets[0] + bytes(out_offset + begin);
    tree_sum(call_.dtype, inputs_, in_offset + begin, first, now);
    if (call_.op == ReduceOp::mean)
      divide(call_.dtype, first, now, static_cast<int>(inputs_.size()));
    for (std::byte* target : targets.subspan(1))
      std::memcpy(target + bytes(out_offset + begin), first, bytes(now));
  }
}

std::int64_t CollectiveWork::part_count(std::int64_t part) const {
  if (call_.uneven) return counts_[static_cast<std::size_t>(part)];
  const bool scattered = call_.kind == CollectiveKind::reduce_scatter;
  return scattered ? call_.count / static_cast<std::int64_t>(inputs_.size()) : call_.count;
}

std::int64_t CollectiveWork::part_offset(std::int64_t part) const {
  if (call_.uneven)
    return std::accumulate(counts_.begin(), counts_.begin() + part, std::int64_t{0});
  return part * call_.count;
}

std::size_t CollectiveWork::bytes(std::int64_t elements) const {
  return static_cast<std::size_t>(elements) * size_of(call_.dtype);
}

}  // namespace lockstep
