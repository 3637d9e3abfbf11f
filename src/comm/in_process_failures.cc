// SPDX-License-Identifier: Apache-2.0
// How ranks of a group fail to meet, and what is said then.
#include <lockstep/base/check.h>
#include <lockstep/base/log.h>

#include <algorithm>
#include <mutex>

#include "comm/in_process_slot.h"

namespace lockstep {

void InProcessBoard::check_agreement(const Slot& slot, int rank, const CollectiveCall& call,
                                     std::span<const std::int64_t> counts) {
  const CollectiveCall& first = slot.work.call();
  const bool same_counts = !call.uneven || std::ranges::equal(slot.work.counts(), counts);
  if (call.agrees_with(first) && same_counts) return;
  fail<PeerError>(call, call.at, std::to_string(slot.opened_by), "ranks disagree: rank ",
                  slot.opened_by, " called ", print_call(first, slot.work.counts()), ", rank ",
                  rank, " called ", print_call(call, counts),
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
  const SourceLocation at = slot.handles[entering == kNobody ? slot.opened_by : entering].at;
  fail<PeerError>(call, at, print_ranks(left), print_ranks(left), " will never come to ",
                  call.to_string(), ", the step there is over", last_seen(slot, left),
                  "; all ranks must make the same calls");
  if (entering != kNobody) std::rethrow_exception(reason_);
}

template <class E, class... Parts>
void InProcessBoard::fail(const CollectiveCall& call, SourceLocation at, std::string peer,
                          const Parts&... parts) {
  ErrorContext context;
  context.peer = std::move(peer);
  context.collective = call.key();
  end_epoch(
      std::make_exception_ptr(E(message(api_name(call.kind), parts...), at, std::move(context))));
}

void InProcessBoard::end_epoch(std::exception_ptr reason) {
  if (reason_) return;
  reason_ = std::move(reason);
  for (Slot* slot : live_)
    if (slot->pieces().open()) slot->pieces().cancel();
}

void InProcessBoard::warn(const Slot& slot, int rank, Deadline::Duration waited) {
  std::string text;
  {
    const std::lock_guard lock(lock_);
    const std::vector<int> absent = missing(slot);
    if (absent.empty()) return;
    const CollectiveCall& call = slot.work.call();
    text = message(api_name(call.kind), "rank ", rank, " has waited ", waited.count(), " ms for ",
                   print_ranks(absent), " at ", call.to_string(), last_seen(slot, absent));
  }
  logging::warning(text);
}

void InProcessBoard::give_up(Slot& slot, int rank, Deadline::Duration waited) {
  const std::lock_guard lock(lock_);
  if (!slot.pieces().open()) return;
  const std::vector<int> absent = missing(slot);
  const CollectiveCall& call = slot.work.call();
  fail<DeadlineExceeded>(call, slot.handles[rank].at, print_ranks(absent), "rank ", rank,
                         " waited ", waited.count(), " ms at ", call.to_string(), " for ",
                         print_ranks(absent), ", which did not come", last_seen(slot, absent),
                         "; see what keeps them, or raise the timeout of collectives "
                         "(CommunicationOptions::timeout)");
}

std::vector<int> InProcessBoard::missing(const Slot& slot) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (slot.handles[rank].presence != Presence::entered) ranks.push_back(rank);
  return ranks;
}

// "; rank 1 last entered barrier user/4 (its call 7); rank 3 has made no call".
std::string InProcessBoard::last_seen(const Slot& slot, const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) {
    const RankRecord& record = ranks_[static_cast<std::size_t>(rank)];
    text += "; rank " + std::to_string(rank);
    if (slot.handles[rank].presence == Presence::withdrawn)
      text += " came but dropped its handle without waiting, and";
    text += record.calls == 0 ? " has made no call in this epoch"
                              : " last entered " + record.last.to_string() + " (its call " +
                                    std::to_string(record.calls) + " of this epoch)";
  }
  return text;
}

}  // namespace lockstep
