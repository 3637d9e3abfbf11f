// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/in_process.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/collective_work.h"
#include "comm/spin_lock.h"

namespace lockstep {

// Where the ranks of an InProcessGroup meet: one slot per collective under way, found by key.
//
// Invariants
//   1. lock_ guards the list of slots, who has entered which, the epoch's reason and what ranks
//   were
//      last seen doing. It is held for a search of a short list, never during arithmetic.
//   2. A slot's work is dealt when the last rank enters, or cancelled when the epoch ends,
//   whichever
//      comes first under the lock. Dealt work always gets done, as any rank may do all of it. So
//      all ranks see the same outcome.
//   3. A slot is referenced by the handles of its ranks and by ranks that look in to do their
//   share.
//      Whoever drops the last reference of a finished slot frees it. Cancelled slots, and those
//      that ranks withdrew from, stay until the next epoch.
class InProcessBoard {
 public:
  InProcessBoard(int size, InProcessOptions options);
  ~InProcessBoard();

  int size() const { return size_; }
  bool spins() const { return spin_; }
  // Enters `rank` into the collective and does its share of all that is ready.
  Pending enter(int rank, const CollectiveCall& call, std::span<const std::int64_t> counts,
                const void* in, void* out);
  void abort(std::exception_ptr reason) noexcept;
  void returned(int rank);
  void begin_epoch();

 private:
  struct Slot;
  struct Handle;
  struct Visit;
  enum class Presence : std::uint8_t { absent, entered, withdrawn };
  struct alignas(64) RankRecord {
    CollectiveCall last;
    std::int64_t calls = 0;  // of this epoch
    bool returned = false;
  };
  static constexpr int kNobody = -1;

  // What a handle does.
  bool done(Handle& handle);
  void wait(Handle& handle, std::optional<Deadline> deadline);
  void release(Handle& handle) noexcept;

  // With lock_ held. The checks end the epoch when they fail, and then throw its reason into the
  // rank that is entering.
  void note(int rank, const CollectiveCall& call);
  Slot* find(int rank, const CollectiveCall& call);
  Slot* open(int rank, const CollectiveCall& call, std::span<const std::int64_t> counts);
  void check_agreement(const Slot& slot, int rank, const CollectiveCall& call,
                       std::span<const std::int64_t> counts);
  void check_left(const Slot& slot, int entering);
  template <class E, class... Parts>
  void fail(const CollectiveCall& call, SourceLocation at, std::string peer, const Parts&... parts);
  void end_epoch(std::exception_ptr reason);
  Visit look_around(int rank, const Slot* own);
  void recycle(Slot& slot) noexcept;
  std::vector<int> missing(const Slot& slot) const;
  std::string last_seen(const Slot& slot, const std::vector<int>& ranks) const;

  // Without.
  void pay(const Visit& visit, int rank) noexcept;
  bool progress(Slot& slot, int rank, std::uint64_t& dealt_seen);
  bool withdraw(Handle& handle) noexcept;
  void drop(Slot& slot) noexcept;
  void warn(const Slot& slot, int rank, Deadline::Duration waited);
  void give_up(Slot& slot, int rank, Deadline::Duration waited);

  const int size_;
  const InProcessOptions options_;
  const bool spin_;
  SpinLock lock_;
  std::vector<std::unique_ptr<Slot>> slots_;  // all there are
  std::vector<Slot*> live_;                   // in order of opening
  std::vector<Slot*> free_;
  std::vector<RankRecord> ranks_;
  std::exception_ptr reason_;  // of the epoch's end; written once per epoch, before any cancel()
  alignas(64) std::atomic<std::uint64_t> dealt_{0};  // how often work was dealt
};

}  // namespace lockstep
