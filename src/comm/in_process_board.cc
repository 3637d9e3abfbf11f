// SPDX-License-Identifier: Apache-2.0
#include "comm/in_process_board.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace lockstep {
namespace {

using Clock = Deadline::Clock;

Deadline::Duration since(Clock::time_point start) {
  return std::chrono::duration_cast<Deadline::Duration>(Clock::now() - start);
}

// "rank 3", "ranks 1, 3".
std::string print_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

std::string print_call(const CollectiveCall& call, std::span<const std::int64_t> counts) {
  std::string text = call.to_string();
  for (std::size_t i = 0; call.uneven && i < counts.size(); ++i)
    text += (i ? ", " : " with counts ") + std::to_string(counts[i]);
  return text;
}

}  // namespace

struct InProcessBoard::Handle final : PendingCall {
  InProcessBoard* board = nullptr;
  Slot* slot = nullptr;
  int rank = 0;
  Presence presence = Presence::absent;  // of this rank in the slot; guarded by the board's lock

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

InProcessBoard::InProcessBoard(int size, InProcessOptions options)
    : size_(size),
      options_(options),
      spin_(size <= available_cores()),
      lock_(spin_),
      ranks_(static_cast<std::size_t>(size)) {}

InProcessBoard::~InProcessBoard() = default;

Pending InProcessBoard::enter(int rank, const CollectiveCall& call,
                              std::span<const std::int64_t> counts, const void* in, void* out) {
  Slot* slot = nullptr;
  Visit visit;
  {
    const std::lock_guard lock(lock_);
    note(rank, call);
    slot = find(rank, call);
    if (!slot) slot = open(rank, call, counts);
    check_agreement(*slot, rank, call, counts);
    check_left(*slot, rank);
    slot->work.place(rank, in, out);
    slot->handles[rank].presence = Presence::entered;
    slot->references.fetch_add(1, std::memory_order_relaxed);
    if (++slot->entered == size_) {
      slot->work.deal();
      dealt_.fetch_add(1, std::memory_order_release);
    }
    visit = look_around(rank, slot);
  }
  // What is too small to share is done by the rank that comes last, without waking another.
  if (slot->pieces().ready())
    slot->work.shareable() ? slot->work.do_own(rank) : slot->work.do_all(rank);
  pay(visit, rank);
  return Pending(slot->handles[rank]);
}

void InProcessBoard::note(int rank, const CollectiveCall& call) {
  if (reason_) std::rethrow_exception(reason_);
  RankRecord& record = ranks_[static_cast<std::size_t>(rank)];
  if (record.returned)
    throw FailedPrecondition(message(api_name(call.kind), "rank ", rank, " makes the call ",
                                     call.to_string(),
                                     " though returned() said its step was over"));
  record.last = call;
  ++record.calls;
}

// The oldest collective with this key that the rank has not entered yet.
InProcessBoard::Slot* InProcessBoard::find(int rank, const CollectiveCall& call) {
  for (Slot* slot : live_)
    if (slot->work.call().has_key(call.channel, call.sequence) &&
        slot->handles[rank].presence == Presence::absent)
      return slot;
  return nullptr;
}

InProcessBoard::Slot* InProcessBoard::open(int rank, const CollectiveCall& call,
                                           std::span<const std::int64_t> counts) {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Slot>(*this));
    live_.reserve(slots_.size());
    free_.reserve(slots_.size());
    free_.push_back(slots_.back().get());
  }
  Slot* slot = free_.back();
  free_.pop_back();
  live_.push_back(slot);
  slot->work.open(call, counts);
  slot->opened_by = rank;
  return slot;
}

void InProcessBoard::check_agreement(const Slot& slot, int rank, const CollectiveCall& call,
                                     std::span<const std::int64_t> counts) {
  const CollectiveCall& first = slot.work.call();
  const bool same_counts = !call.uneven || std::ranges::equal(slot.work.counts(), counts);
  if (call == first && same_counts) return;
  fail<PeerError>(call, std::to_string(slot.opened_by), "ranks disagree: rank ", slot.opened_by,
                  " called ", print_call(first, slot.work.counts()), ", rank ", rank, " called ",
                  print_call(call, counts),
                  "; all ranks must make the same calls with the same keys");
  std::rethrow_exception(reason_);
}

void InProcessBoard::check_left(const Slot& slot, int entering) {
  if (std::ranges::none_of(ranks_, &RankRecord::returned)) return;
  std::vector<int> left = missing(slot);
  std::erase_if(left, [&](int rank) {
    return rank == entering || !ranks_[static_cast<std::size_t>(rank)].returned;
  });
  if (left.empty()) return;
  const CollectiveCall& call = slot.work.call();
  fail<PeerError>(call, print_ranks(left), print_ranks(left), " will never come to ",
                  call.to_string(), ", the step there is over", last_seen(left),
                  "; all ranks must make the same calls");
  if (entering != kNobody) std::rethrow_exception(reason_);
}

template <class E, class... Parts>
void InProcessBoard::fail(const CollectiveCall& call, std::string peer, const Parts&... parts) {
  ErrorContext context;
  context.peer = std::move(peer);
  context.collective = call.key();
  end_epoch(std::make_exception_ptr(
      E(message(api_name(call.kind), parts...), SourceLocation::current(), std::move(context))));
}

void InProcessBoard::end_epoch(std::exception_ptr reason) {
  if (reason_) return;
  reason_ = std::move(reason);
  for (Slot* slot : live_)
    if (slot->pieces().open()) slot->pieces().cancel();
}

InProcessBoard::Visit InProcessBoard::look_around(int rank, const Slot* own) {
  Visit visit;
  for (Slot* slot : live_) {
    if (visit.count == visit.slots.size()) break;
    if (slot == own || !slot->pieces().ready() || !slot->pieces().has_own(rank)) continue;
    slot->references.fetch_add(1, std::memory_order_relaxed);
    visit.slots[visit.count++] = slot;
  }
  return visit;
}

void InProcessBoard::pay(const Visit& visit, int rank) noexcept {
  for (std::size_t i = 0; i < visit.count; ++i) {
    visit.slots[i]->work.do_own(rank);
    drop(*visit.slots[i]);
  }
}

void InProcessBoard::drop(Slot& slot) noexcept {
  if (slot.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!slot.pieces().finished()) return;
  const std::lock_guard lock(lock_);
  std::erase(live_, &slot);
  recycle(slot);
}

void InProcessBoard::recycle(Slot& slot) noexcept {
  for (int rank = 0; rank < size_; ++rank) slot.handles[rank].presence = Presence::absent;
  slot.entered = 0;
  free_.push_back(&slot);
}

bool InProcessBoard::done(Handle& handle) {
  Slot& slot = *handle.slot;
  if (slot.pieces().ready()) slot.work.do_own(handle.rank);
  return slot.pieces().over();
}

// One round of a waiting rank. True when the slot is over.
bool InProcessBoard::progress(Slot& slot, int rank, std::uint64_t& dealt_seen) {
  if (slot.pieces().ready()) {
    slot.work.do_all(rank);
  } else if (const auto dealt = dealt_.load(std::memory_order_acquire); dealt != dealt_seen) {
    dealt_seen = dealt;
    Visit visit;
    {
      const std::lock_guard lock(lock_);
      visit = look_around(rank, &slot);
    }
    pay(visit, rank);
  }
  return slot.pieces().over();
}

void InProcessBoard::wait(Handle& handle, std::optional<Deadline> deadline) {
  Slot& slot = *handle.slot;
  std::uint64_t dealt_seen = 0;
  if (!progress(slot, handle.rank, dealt_seen)) {
    const auto start = Clock::now();
    const auto limit = deadline ? deadline->when() : start + options_.collective_timeout;
    auto warning = start + options_.warn_every;
    Backoff backoff(spin_);
    while (!progress(slot, handle.rank, dealt_seen)) {
      const bool look = options_.wait_policy ? options_.wait_policy->pause(handle.rank, backoff)
                                             : backoff.pause();
      if (!look) continue;
      const auto now = Clock::now();
      if (now >= limit) give_up(slot, handle.rank, since(start));
      if (now < warning) continue;
      warn(slot, handle.rank, since(start));
      warning = now + options_.warn_every;
    }
  }
  if (slot.pieces().cancelled()) std::rethrow_exception(reason_);
}

void InProcessBoard::release(Handle& handle) noexcept {
  Slot& slot = *handle.slot;
  if (!slot.pieces().over()) {
    if (withdraw(handle)) return;
    Backoff backoff(spin_);
    for (slot.work.do_all(handle.rank); !slot.pieces().over();) backoff.pause();
  }
  drop(slot);
}

// Leaves a collective that not all have entered; it can never be dealt then. False: too late.
bool InProcessBoard::withdraw(Handle& handle) noexcept {
  const std::lock_guard lock(lock_);
  if (!handle.slot->pieces().open()) return false;
  handle.presence = Presence::withdrawn;
  --handle.slot->entered;
  handle.slot->references.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void InProcessBoard::warn(const Slot& slot, int rank, Deadline::Duration waited) {
  std::string text;
  {
    const std::lock_guard lock(lock_);
    const std::vector<int> absent = missing(slot);
    if (absent.empty()) return;
    const CollectiveCall& call = slot.work.call();
    text = message(api_name(call.kind), "rank ", rank, " has waited ", waited.count(), " ms for ",
                   print_ranks(absent), " at ", call.to_string(), last_seen(absent));
  }
  logging::warning(text);
}

void InProcessBoard::give_up(Slot& slot, int rank, Deadline::Duration waited) {
  const std::lock_guard lock(lock_);
  if (!slot.pieces().open()) return;
  const std::vector<int> absent = missing(slot);
  const CollectiveCall& call = slot.work.call();
  fail<DeadlineExceeded>(call, print_ranks(absent), "rank ", rank, " waited ", waited.count(),
                         " ms at ", call.to_string(), " for ", print_ranks(absent),
                         ", which did not come", last_seen(absent),
                         "; see what keeps them, or raise collective_timeout");
}

std::vector<int> InProcessBoard::missing(const Slot& slot) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (slot.handles[rank].presence != Presence::entered) ranks.push_back(rank);
  return ranks;
}

// "; rank 1 last entered barrier user/4 (its call 7); rank 3 has made no call".
std::string InProcessBoard::last_seen(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) {
    const RankRecord& record = ranks_[static_cast<std::size_t>(rank)];
    text += "; rank " + std::to_string(rank);
    text += record.calls == 0 ? " has made no call in this epoch"
                              : " last entered " + record.last.to_string() + " (its call " +
                                    std::to_string(record.calls) + " of this epoch)";
  }
  return text;
}

void InProcessBoard::abort(std::exception_ptr reason) noexcept {
  if (!reason)
    reason =
        std::make_exception_ptr(PeerError(message("Communicator::abort", "no reason was given")));
  const std::lock_guard lock(lock_);
  end_epoch(std::move(reason));
}

void InProcessBoard::returned(int rank) {
  const std::lock_guard lock(lock_);
  ranks_[static_cast<std::size_t>(rank)].returned = true;
  for (Slot* slot : live_) {
    if (reason_) return;
    if (slot->entered > 0 && slot->pieces().open()) check_left(*slot, kNobody);
  }
}

void InProcessBoard::begin_epoch() {
  const std::lock_guard lock(lock_);
  for (const Slot* slot : live_)
    if (slot->references.load(std::memory_order_acquire) != 0)
      throw FailedPrecondition(
          message("InProcessGroup::begin_epoch", "expected no handle left, but ",
                  slot->work.call().to_string(), " has one; wait for it or destroy it first"));
  for (Slot* slot : live_) recycle(*slot);
  live_.clear();
  ranks_.assign(ranks_.size(), RankRecord{});
  reason_ = nullptr;
}

}  // namespace lockstep
