// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "comm/grpc/board.h"

namespace lockstep {

struct GrpcBoard::Slot final : PendingCall, DataSender {
  enum class State : std::uint8_t { open, running, finished, failed };

  explicit Slot(GrpcBoard& board)
      : board(board),
        transfer(board.rank_, board.size_),
        seats(static_cast<std::size_t>(board.size_)),
        payloads(seats.size()) {}

  bool done() override { return board.done(*this); }
  void wait(std::optional<Deadline> deadline) override { board.wait(*this, deadline); }
  void release() noexcept override { board.release(*this); }

  void send_data(int rank, Phase phase, std::int64_t offset,
                 std::span<const std::byte> body) override {
    FrameHeader header{.kind = FrameKind::data};
    header.phase = static_cast<std::uint8_t>(phase);
    header.serial = seats[static_cast<std::size_t>(board.rank_)].serial;
    header.offset = static_cast<std::uint64_t>(offset);
    header.bytes = body.size();
    std::vector<std::byte> head(sizeof header);
    std::memcpy(head.data(), &header, sizeof header);
    borrowed.fetch_add(1, std::memory_order_relaxed);
    board.links_.send(rank,
                      {.head = std::move(head), .body = body, .borrowed = &borrowed, .bulk = true});
  }

  bool is(State which) const { return state.load(std::memory_order_acquire) == which; }
  bool lent() const { return borrowed.load(std::memory_order_acquire) > 0; }
  // Nobody touches this rank's buffers any more, but for what is lent.
  bool over() const { return is(State::finished) || (is(State::failed) && !busy); }

  struct Seat {
    Presence presence = Presence::absent;
    std::uint64_t serial = 0;  // the rank's number of its call
  };

  GrpcBoard& board;
  CollectiveCall call;
  std::vector<std::int64_t> counts;  // of an uneven all_gather, else empty
  std::int64_t epoch = 0;
  int opened_by = 0;
  SourceLocation at;  // of this rank's call
  int entered = 0;
  bool held = false;     // by a handle
  bool busy = false;     // the wire's thread works on it
  bool started = false;  // transfer.start() has returned
  std::atomic<State> state{State::open};
  std::atomic<int> borrowed{0};
  Transfer transfer;
  std::vector<Seat> seats;                       // by rank
  std::vector<std::vector<std::byte>> payloads;  // by rank: small inputs
};

}  // namespace lockstep
