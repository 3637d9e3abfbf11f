// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/call.h"
#include "comm/pieces.h"

namespace lockstep {

// One collective whose ranks' memory is all in reach: the arithmetic and the copies, cut into
// pieces that any rank may do. Who does a piece does not matter for its bits. Holds memory for its
// number of ranks and is used again and again without allocating.
//
// open(), place() for every rank, then deal(), all under the caller's lock; do_own() and do_all()
// by any number of threads after that.
class CollectiveWork {
 public:
  explicit CollectiveWork(int ranks);

  void open(const CollectiveCall& call, std::span<const std::int64_t> counts);
  void place(int rank, const void* in, void* out);
  void deal();

  const CollectiveCall& call() const { return call_; }
  // The counts of an uneven all_gather, else empty.
  std::span<const std::int64_t> counts() const { return counts_; }
  Pieces& pieces() { return pieces_; }
  // Several ranks gain by doing it together. After deal().
  bool shareable() const { return pieces_dealt_ > 1; }

  void do_own(int rank) {
    pieces_.do_own(rank, [this](std::int64_t piece) { do_piece(piece); });
  }
  void do_all(int rank) {
    pieces_.do_all(rank, [this](std::int64_t piece) { do_piece(piece); });
  }

 private:
  void find_targets(const void* except);
  void do_piece(std::int64_t piece) const;
  void reduce(std::span<std::byte* const> targets, std::int64_t in_offset, std::int64_t out_offset,
              std::int64_t count) const;
  std::int64_t part_count(std::int64_t part) const;
  // Where the part of a rank begins in all_gather's output.
  std::int64_t part_offset(std::int64_t part) const;
  std::size_t bytes(std::int64_t elements) const;

  CollectiveCall call_;
  std::vector<std::int64_t> counts_;
  std::vector<const void*> inputs_;  // by rank
  std::vector<std::byte*> outputs_;  // by rank
  std::vector<std::byte*> targets_;  // the outputs without repetition
  // A piece is a range of one part. Parts: the whole (all_reduce), a rank's share (reduce_scatter,
  // all_gather), a target (broadcast).
  std::int64_t pieces_dealt_ = 0;
  std::int64_t pieces_per_part_ = 0;
  std::int64_t elements_per_piece_ = 0;
  Pieces pieces_;
};

}  // namespace lockstep
