// SPDX-License-Identifier: Apache-2.0
// How ranks meet and wait. How they fail to: in_process_failures.cc.
#include <lockstep/base/check.h>

#include <algorithm>
#include <mutex>

#include "comm/in_process_slot.h"

namespace lockstep {

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
    slot->handles[rank].at = call.at;
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
  if (reason_) throw_into(call, reason_);
  RankRecord& record = ranks_[static_cast<std::size_t>(rank)];
  if (record.returned)
    throw FailedPrecondition(message(api_name(call.kind), "rank ", rank, " makes the call ",
                                     call.to_string(),
                                     " though returned() said its step was over"),
                             call.at);
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
    const auto start = Deadline::Clock::now();
    const auto limit =
        deadline ? deadline->when() : Deadline::after(options_.collective_timeout).when();
    auto warning = Deadline::after(options_.warn_every).when();
    Backoff backoff(spin_);
    while (!progress(slot, handle.rank, dealt_seen)) {
      const bool look = options_.wait_policy ? options_.wait_policy->pause(handle.rank, backoff)
                                             : backoff.pause();
      if (!look) continue;
      const auto now = Deadline::Clock::now();
      const auto waited = std::chrono::duration_cast<Deadline::Duration>(now - start);
      if (now >= limit) give_up(slot, handle.rank, waited);
      if (now < warning) continue;
      warn(slot, handle.rank, waited);
      warning = Deadline::after(options_.warn_every).when();
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

void InProcessBoard::abort(std::exception_ptr reason) noexcept {
  if (!reason)
    reason =
        std::make_exception_ptr(PeerError(message("Communicator::abort", "no reason was given"),
                                          SourceLocation{}));
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
                  slot->work.call().to_string(), " has one; wait for it or destroy it first"),
          SourceLocation{});
  for (Slot* slot : live_) recycle(*slot);
  live_.clear();
  ranks_.assign(ranks_.size(), RankRecord{});
  reason_ = nullptr;
}

}  // namespace lockstep
