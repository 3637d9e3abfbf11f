// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/grpc.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/call.h"
#include "comm/grpc/links.h"
#include "comm/grpc/transfer.h"

namespace lockstep {

// Where one rank sees which collectives it and the others have entered: one slot per collective
// under way, found by key. Every rank tells all others what it enters, so that each can compare the
// calls and say who has not come.
//
// Invariants
//   1. mutex_ guards the slots, what is known of the other ranks and reason_. Messages are sent
//      with it held, so that all ranks see a rank's calls in one order. It is not held while data
//      frames are worked on: the wire's thread does that alone, in slots marked busy.
//   2. A slot is open until all ranks have entered, then running until all data has come, then
//      finished. It fails when the group fails while it is open, or when data cannot come any more.
//      Only open slots can be withdrawn from.
//   3. A slot that is over is used again once its handle is gone, nothing is sent from its buffers
//      any more and nobody works on it. Slots that failed stay.
class GrpcBoard final : private LinkEvents {
 public:
  explicit GrpcBoard(const GrpcOptions& options);
  ~GrpcBoard();

  void connect() { links_.connect(); }
  Links& links() { return links_; }
  Pending enter(const CollectiveCall& call, std::span<const std::int64_t> counts, const void* in,
                void* out);
  void abort(std::exception_ptr reason) noexcept;
  void returned();
  void begin_epoch();
  // Says goodbye; no call may follow.
  void leave() noexcept;

 private:
  void received(int rank, const FrameHeader& header, Message& frame) override;
  void left(int rank) override;
  void lost(int rank, const std::string& why) override;
  void failed(std::exception_ptr reason) override;

  struct Slot;
  enum class Presence : std::uint8_t { absent, entered, withdrawn };
  struct RankRecord {
    CollectiveCall last;
    std::int64_t calls = 0;
    std::int64_t returned = -1;  // last epoch that it has returned from
    bool left = false;
    std::unordered_map<std::uint64_t, Slot*> slots;  // by its serial
  };
  static constexpr int kNobody = -1;

  // What a handle does.
  bool done(Slot& slot);
  void wait(Slot& slot, std::optional<Deadline> deadline);
  void release(Slot& slot) noexcept;

  // With mutex_ held. The checks fail the group, and then throw its reason into a rank that is
  // entering.
  RankRecord& record(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  Slot* find(int rank, const CollectiveCall& call, std::int64_t epoch);
  Slot* open(int rank, const CollectiveCall& call, std::span<const std::int64_t> counts,
             std::int64_t epoch);
  void seat(Slot& slot, int rank, std::uint64_t serial);
  void announce(Slot& slot);
  void run_if_all_entered(Slot& slot);
  void finish_if_complete(Slot& slot);
  bool check_agreement(const Slot& slot, int rank, const CollectiveCall& call,
                       std::span<const std::int64_t> counts);
  bool check_left(const Slot& slot);
  void check_left();
  template <class E, class... Parts>
  void fail(const Slot& slot, const std::vector<int>& peers, const Parts&... parts);
  void end(std::exception_ptr reason);
  void fail_running();
  void fail_slot(Slot& slot);
  void recycle(Slot& slot) noexcept;
  std::vector<int> missing(const Slot& slot) const;
  std::string last_seen(const Slot& slot, const std::vector<int>& ranks) const;
  void warn(const Slot& slot, Deadline::Duration waited);
  void give_up(Slot& slot, Deadline::Duration waited);

  void on_enter(int rank, const FrameHeader& header, Message& frame);
  void on_data(int rank, const FrameHeader& header, Message& frame);
  void on_withdraw(int rank, std::uint64_t serial);
  void wait_for_buffers(Slot& slot) noexcept;

  const GrpcOptions options_;
  const int rank_, size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;  // all there are
  std::vector<Slot*> live_;                   // in order of opening
  std::vector<Slot*> free_;
  std::vector<RankRecord> ranks_;
  std::uint64_t next_serial_ = 1;
  std::int64_t epoch_ = 0;
  std::exception_ptr reason_;  // why the group has failed
  Links links_;                // last: its thread uses everything above
};

}  // namespace lockstep
