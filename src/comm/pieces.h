// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

namespace lockstep {

// Work cut into numbered pieces that several ranks do together, without locks.
//
// States: open (not all have come), dealt with some pieces left, finished (none left), cancelled.
// open -> dealt -> finished, or open -> cancelled; reset() opens it again. Every rank has a home
// range of consecutive pieces, which it takes in order from a cursor; an idle rank takes from the
// cursors of the others. Whoever sees finished() sees all that was written in the pieces; whoever
// sees ready() sees all that was written before deal().
class Pieces {
 public:
  explicit Pieces(int ranks)
      : ranks_(ranks), cursors_(new Cursor[static_cast<std::size_t>(ranks)]) {}

  // The caller holds the lock under which ranks come, for these three.
  void reset() { left_.store(kOpen, std::memory_order_relaxed); }
  void deal(std::int64_t pieces) {
    for (int rank = 0; rank < ranks_; ++rank) {
      cursors_[rank].next.store(rank * pieces / ranks_, std::memory_order_relaxed);
      cursors_[rank].end = (rank + 1) * pieces / ranks_;
    }
    left_.store(pieces, std::memory_order_release);
  }
  void cancel() { left_.store(kCancelled, std::memory_order_release); }

  bool open() const { return left_.load(std::memory_order_acquire) == kOpen; }
  bool cancelled() const { return left_.load(std::memory_order_acquire) == kCancelled; }
  bool finished() const { return left_.load(std::memory_order_acquire) == 0; }
  // Finished or cancelled: nobody touches the ranks' data any more.
  bool over() const { return left_.load(std::memory_order_acquire) <= 0; }
  // Dealt and not finished.
  bool ready() const {
    const std::int64_t left = left_.load(std::memory_order_acquire);
    return left > 0 && left != kOpen;
  }
  // Some of the rank's own pieces are still to be taken. Needs ready().
  bool has_own(int rank) const {
    return cursors_[rank].next.load(std::memory_order_relaxed) < cursors_[rank].end;
  }

  // Does what is left of the rank's own pieces. Needs ready() at some time before; so does
  // do_all().
  template <class Do>
  void do_own(int rank, const Do& do_piece) {
    finish(take(cursors_[rank], do_piece));
  }
  // Does what is left of anyone's pieces, the rank's own first.
  template <class Do>
  void do_all(int rank, const Do& do_piece) {
    for (int i = 0; i < ranks_; ++i) finish(take(cursors_[(rank + i) % ranks_], do_piece));
  }

 private:
  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kCancelled = -1;

  struct alignas(64) Cursor {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  template <class Do>
  static std::int64_t take(Cursor& cursor, const Do& do_piece) {
    std::int64_t taken = 0;
    while (cursor.next.load(std::memory_order_relaxed) < cursor.end) {
      const std::int64_t piece = cursor.next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= cursor.end) break;
      do_piece(piece);
      ++taken;
    }
    return taken;
  }
  void finish(std::int64_t pieces) {
    if (pieces > 0) left_.fetch_sub(pieces, std::memory_order_acq_rel);
  }

  int ranks_;
  std::unique_ptr<Cursor[]> cursors_;
  alignas(64) std::atomic<std::int64_t> left_{kOpen};
};

}  // namespace lockstep
