// SPDX-License-Identifier: Apache-2.0
// How ranks in different processes fail to meet, and what is said then.
#include <lockstep/base/check.h>
#include <lockstep/base/log.h>

#include <algorithm>

#include "comm/grpc/slot.h"

namespace lockstep {

bool GrpcBoard::check_agreement(const Slot& slot, int rank, const CollectiveCall& call,
                                std::span<const std::int64_t> counts) {
  const bool same_counts = !call.uneven || std::ranges::equal(slot.counts, counts);
  if (call.agrees_with(slot.call) && same_counts) return true;
  const int first = slot.opened_by;
  fail<PeerError>(slot, {first == rank_ ? rank : first}, "ranks disagree: rank ", first, " called ",
                  print_call(slot.call, slot.counts), ", rank ", rank, " called ",
                  print_call(call, counts),
                  "; all ranks must make the same calls with the same keys");
  return false;
}

bool GrpcBoard::check_left(const Slot& slot) {
  if (!slot.is(Slot::State::open) || slot.entered == 0) return true;
  std::vector<int> left = missing(slot);
  std::erase_if(left,
                [&](int rank) { return !record(rank).left && record(rank).returned < slot.epoch; });
  if (left.empty()) return true;
  fail<PeerError>(slot, left, print_ranks(left), " will never come to ", slot.call.to_string(),
                  record(left[0]).left ? ", its group is gone" : ", the step there is over",
                  last_seen(slot, left), "; all ranks must make the same calls, and as many runs");
  return false;
}

void GrpcBoard::check_left() {
  const std::vector<Slot*> live = live_;
  for (const Slot* slot : live)
    if (!reason_) check_left(*slot);
}

template <class E, class... Parts>
void GrpcBoard::fail(const Slot& slot, const std::vector<int>& peers, const Parts&... parts) {
  ErrorContext context;
  for (const int rank : peers)
    context.peer += (context.peer.empty() ? "" : ", ") + links_.peer(rank);
  context.collective = slot.call.key();
  end(std::make_exception_ptr(
      E(message(api_name(slot.call.kind), parts...), slot.at, std::move(context))));
}

// Every rank passes the reason on, so that it comes before whatever follows from it.
void GrpcBoard::end(std::exception_ptr reason) {
  if (reason_) return;
  reason_ = std::move(reason);
  Packer packer({.kind = FrameKind::abort});
  pack_error(packer, reason_);
  links_.send_to_all(packer.take());
  for (Slot* slot : live_)
    if (slot->is(Slot::State::open)) fail_slot(*slot);
}

void GrpcBoard::fail_slot(Slot& slot) {
  slot.state.store(Slot::State::failed, std::memory_order_release);
  links_.wire().forget(slot.borrowed);
  const Slot::Seat& own = slot.seats[static_cast<std::size_t>(rank_)];
  if (own.presence == Presence::entered) {
    FrameHeader header{.kind = FrameKind::withdraw};
    header.serial = own.serial;
    links_.send_to_all(Packer(header).take());
  }
  changed_.notify_all();
}

void GrpcBoard::fail_running() {
  for (Slot* slot : live_)
    if (slot->is(Slot::State::running)) fail_slot(*slot);
}

void GrpcBoard::failed(std::exception_ptr reason) {
  const std::lock_guard lock(mutex_);
  end(std::move(reason));
}

void GrpcBoard::left(int rank) {
  const std::lock_guard lock(mutex_);
  record(rank).left = true;
  check_left();
}

void GrpcBoard::lost(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  ErrorContext context;
  context.peer = links_.peer(rank);
  std::string during;
  for (const Slot* slot : live_) {
    if (slot->seats[static_cast<std::size_t>(rank_)].presence != Presence::entered ||
        slot->is(Slot::State::finished))
      continue;
    context.collective = slot->call.key();
    during = " during " + slot->call.to_string();
    break;
  }
  end(std::make_exception_ptr(PeerError(
      message("GrpcGroup", links_.peer(rank), " was lost", during, ": ", why,
              "; it may have ended or been killed, see its log; restart from a checkpoint"),
      SourceLocation(), std::move(context))));
  fail_running();
}

void GrpcBoard::on_withdraw(int rank, std::uint64_t serial) {
  const std::lock_guard lock(mutex_);
  const auto found = record(rank).slots.find(serial);
  if (found == record(rank).slots.end()) return;
  Slot& slot = *found->second;
  if (slot.is(Slot::State::open)) {
    slot.seats[static_cast<std::size_t>(rank)].presence = Presence::withdrawn;
    --slot.entered;
    record(rank).slots.erase(found);
    check_left(slot);
  } else if (slot.is(Slot::State::running)) {
    fail<PeerError>(slot, {rank}, "rank ", rank, " came to ", slot.call.to_string(),
                    " but dropped its handle while others went on");
    fail_running();
  }
}

void GrpcBoard::warn(const Slot& slot, Deadline::Duration waited) {
  const std::vector<int> absent = missing(slot);
  if (absent.empty()) return;
  logging::warning(message(api_name(slot.call.kind), "rank ", rank_, " has waited ", waited.count(),
                           " ms for ", print_ranks(absent), " at ", slot.call.to_string(),
                           last_seen(slot, absent)));
}

void GrpcBoard::give_up(Slot& slot, Deadline::Duration waited) {
  const std::vector<int> absent = missing(slot);
  if (slot.is(Slot::State::open)) {
    fail<DeadlineExceeded>(slot, absent, "rank ", rank_, " waited ", waited.count(), " ms at ",
                           slot.call.to_string(), " for ", print_ranks(absent),
                           ", which did not come", last_seen(slot, absent),
                           "; see what keeps them, or raise the timeout of "
                           "collectives (CommunicationOptions::timeout)");
  } else {
    fail<DeadlineExceeded>(slot, absent, "rank ", rank_, " waited ", waited.count(), " ms at ",
                           slot.call.to_string(),
                           ", to which all have come, for its data; the network may be slow or "
                           "broken, else raise the timeout of collectives "
                           "(CommunicationOptions::timeout)");
    fail_running();
  }
  if (slot.is(Slot::State::finished)) slot.state.store(Slot::State::failed);
}

std::vector<int> GrpcBoard::missing(const Slot& slot) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (slot.seats[static_cast<std::size_t>(rank)].presence != Presence::entered)
      ranks.push_back(rank);
  return ranks;
}

// "; rank 1, worker 1 (10.0.0.2:20000), last entered barrier user/4 (its call 7)".
std::string GrpcBoard::last_seen(const Slot& slot, const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    const RankRecord& record = ranks_[index];
    text += "; rank " + std::to_string(rank) + ", " + links_.peer(rank) + ",";
    if (slot.seats[index].presence == Presence::withdrawn)
      text += " came but dropped its handle without waiting, and";
    text += record.calls == 0 ? " has made no call"
                              : " last entered " + record.last.to_string() + " (its call " +
                                    std::to_string(record.calls) + ")";
  }
  return text;
}

}  // namespace lockstep
