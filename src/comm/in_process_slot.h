// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "comm/in_process_board.h"

namespace lockstep {

struct InProcessBoard::Handle final : PendingCall {
  InProcessBoard* board = nullptr;
  Slot* slot = nullptr;
  int rank = 0;
  Presence presence = Presence::absent;  // of this rank in the slot; guarded by the board's lock
  SourceLocation at;                     // of this rank's call; likewise

  bool done() override { return board->done(*this); }
  void wait(std::optional<Deadline> deadline) override { board->wait(*this, deadline); }
  void release() noexcept override { board->release(*this); }
};

struct InProcessBoard::Slot {
  explicit Slot(InProcessBoard& board)
      : work(board.size_), handles(new Handle[board.ranks_.size()]) {
    for (int rank = 0; rank < board.size_; ++rank) {
      handles[rank].board = &board;
      handles[rank].slot = this;
      handles[rank].rank = rank;
    }
  }
  Pieces& pieces() { return work.pieces(); }

  CollectiveWork work;
  std::unique_ptr<Handle[]> handles;  // by rank
  int opened_by = 0;
  int entered = 0;
  std::atomic<int> references{0};
};

// Slots that a rank has found work of its own in, each with a reference.
struct InProcessBoard::Visit {
  std::array<Slot*, 8> slots{};
  std::size_t count = 0;
};

}  // namespace lockstep
