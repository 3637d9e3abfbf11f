// SPDX-License-Identifier: Apache-2.0
// How ranks in different processes meet and wait. How they fail to: board_failures.cc.
#include "comm/grpc/board.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/base/thread.h>

#include <algorithm>

#include "comm/grpc/slot.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

// How long the wire may take to let go of buffers once all streams were told to end.
constexpr auto kLetGo = 5s;

}  // namespace

GrpcBoard::GrpcBoard(const GrpcOptions& options)
    : options_(options),
      rank_(options.rank),
      size_(static_cast<int>(options.addresses.size())),
      ranks_(options.addresses.size()),
      links_(options, *this) {}

GrpcBoard::~GrpcBoard() = default;

Pending GrpcBoard::enter(const CollectiveCall& call, std::span<const std::int64_t> counts,
                         const void* in, void* out) {
  const std::lock_guard lock(mutex_);
  if (reason_) throw_into(call, reason_);
  RankRecord& own = record(rank_);
  if (own.returned >= epoch_)
    throw FailedPrecondition(message(api_name(call.kind), "rank ", rank_, " makes the call ",
                                     call.to_string(), " though returned() said its step was over"),
                             call.at);
  own.last = call;
  ++own.calls;
  Slot* slot = find(rank_, call, epoch_);
  if (!slot) slot = open(rank_, call, counts, epoch_);
  if (!check_agreement(*slot, rank_, call, counts)) std::rethrow_exception(reason_);
  slot->at = call.at;
  slot->transfer.open(call, counts, in, out);
  seat(*slot, rank_, next_serial_++);
  if (!check_left(*slot)) std::rethrow_exception(reason_);
  announce(*slot);
  run_if_all_entered(*slot);
  slot->held = true;
  return Pending(*slot);
}

// The oldest collective with this key that the rank has not entered yet.
GrpcBoard::Slot* GrpcBoard::find(int rank, const CollectiveCall& call, std::int64_t epoch) {
  for (Slot* slot : live_)
    if (slot->epoch == epoch && slot->call.has_key(call.channel, call.sequence) &&
        slot->seats[static_cast<std::size_t>(rank)].presence == Presence::absent)
      return slot;
  return nullptr;
}

GrpcBoard::Slot* GrpcBoard::open(int rank, const CollectiveCall& call,
                                 std::span<const std::int64_t> counts, std::int64_t epoch) {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Slot>(*this));
    live_.reserve(slots_.size());
    free_.reserve(slots_.size());
    free_.push_back(slots_.back().get());
  }
  Slot* slot = free_.back();
  free_.pop_back();
  live_.push_back(slot);
  slot->call = call;
  slot->counts.clear();
  if (call.uneven) slot->counts.assign(counts.begin(), counts.end());
  slot->epoch = epoch;
  slot->opened_by = rank;
  slot->at = {};
  return slot;
}

void GrpcBoard::seat(Slot& slot, int rank, std::uint64_t serial) {
  slot.seats[static_cast<std::size_t>(rank)] = {Presence::entered, serial};
  if (rank != rank_) record(rank).slots[serial] = &slot;
  ++slot.entered;
}

void GrpcBoard::announce(Slot& slot) {
  FrameHeader header{.kind = FrameKind::enter};
  header.serial = slot.seats[static_cast<std::size_t>(rank_)].serial;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Packer packer(header);
    packer.put(slot.epoch);
    pack_call(packer, slot.call, slot.counts);
    const auto payload = slot.transfer.payload_for(rank);
    packer.append(payload.data(), payload.size());
    links_.send(rank, {.head = packer.take()});
  }
}

void GrpcBoard::run_if_all_entered(Slot& slot) {
  if (slot.entered < size_ || !slot.is(Slot::State::open)) return;
  slot.state.store(Slot::State::running, std::memory_order_release);
  slot.transfer.start(slot.payloads, slot);
  slot.started = true;
  finish_if_complete(slot);
}

void GrpcBoard::finish_if_complete(Slot& slot) {
  if (!slot.is(Slot::State::running) || !slot.started || slot.busy || !slot.transfer.complete())
    return;
  slot.state.store(Slot::State::finished, std::memory_order_release);
  changed_.notify_all();
}

void GrpcBoard::recycle(Slot& slot) noexcept {
  for (std::size_t rank = 0; rank < slot.seats.size(); ++rank) {
    if (slot.seats[rank].presence == Presence::entered)
      ranks_[rank].slots.erase(slot.seats[rank].serial);
    slot.seats[rank] = {};
    slot.payloads[rank].clear();
  }
  slot.entered = 0;
  slot.held = slot.started = false;
  slot.state.store(Slot::State::open, std::memory_order_relaxed);
  std::erase(live_, &slot);
  free_.push_back(&slot);
}

bool GrpcBoard::done(Slot& slot) {
  if (slot.is(Slot::State::finished)) return !slot.lent();
  if (!slot.is(Slot::State::failed)) return false;
  const std::lock_guard lock(mutex_);
  return slot.over() && !slot.lent();
}

void GrpcBoard::wait(Slot& slot, std::optional<Deadline> deadline) {
  const auto start = Deadline::Clock::now();
  const auto limit =
      deadline ? deadline->when() : Deadline::after(options_.collective_timeout).when();
  auto warning = Deadline::after(options_.warn_every).when();
  std::unique_lock lock(mutex_);
  while (!slot.over() || (slot.is(Slot::State::finished) && slot.lent())) {
    const auto now = Deadline::Clock::now();
    const auto waited = std::chrono::duration_cast<Deadline::Duration>(now - start);
    if (now >= limit) give_up(slot, waited);
    if (now >= warning) {
      warn(slot, waited);
      warning = now + options_.warn_every;
    }
    auto until = std::min(limit, warning);
    if (slot.is(Slot::State::failed)) until = now + 1ms;     // its last frame is being worked on
    if (slot.is(Slot::State::finished)) until = now + 50us;  // what is lent comes back unannounced
    changed_.wait_until(lock, until);
  }
  if (!slot.is(Slot::State::failed)) return;
  lock.unlock();
  wait_for_buffers(slot);
  std::rethrow_exception(reason_);
}

// A failed collective's buffers may still be on their way out to a peer that takes nothing.
void GrpcBoard::wait_for_buffers(Slot& slot) noexcept {
  const Deadline gentle = Deadline::after(500ms), limit = Deadline::after(kLetGo);
  bool severed = false;
  while (slot.lent() && !limit.passed()) {
    if (!severed && gentle.passed()) {
      links_.sever();
      severed = true;
    }
    std::this_thread::sleep_for(200us);
  }
  if (slot.lent())
    logging::error("[GrpcGroup] a connection does not let go of a tensor that was being sent");
}

void GrpcBoard::release(Slot& slot) noexcept {
  std::unique_lock lock(mutex_);
  if (slot.is(Slot::State::open)) {
    Slot::Seat& own = slot.seats[static_cast<std::size_t>(rank_)];
    own.presence = Presence::withdrawn;
    --slot.entered;
    slot.held = false;
    FrameHeader header{.kind = FrameKind::withdraw};
    header.serial = own.serial;
    links_.send_to_all(Packer(header).take());
    return;
  }
  const Deadline limit = Deadline::after(options_.collective_timeout);
  while (!slot.over() || (slot.is(Slot::State::finished) && slot.lent())) {
    if (limit.passed() && !slot.is(Slot::State::failed)) give_up(slot, options_.collective_timeout);
    changed_.wait_for(lock, 1ms);
  }
  if (slot.lent()) {
    lock.unlock();
    wait_for_buffers(slot);
    lock.lock();
  }
  slot.held = false;
  if (slot.is(Slot::State::finished)) recycle(slot);
}

void GrpcBoard::received(int rank, const FrameHeader& header, Message& frame) {
  switch (header.kind) {
    case FrameKind::enter:
      return on_enter(rank, header, frame);
    case FrameKind::data:
      return on_data(rank, header, frame);
    case FrameKind::withdraw:
      return on_withdraw(rank, header.serial);
    case FrameKind::returned: {
      const std::lock_guard lock(mutex_);
      record(rank).returned = static_cast<std::int64_t>(header.offset);
      return check_left();
    }
    default:
      throw PeerError(
          message("GrpcGroup", "an unknown message of kind ", static_cast<int>(header.kind)));
  }
}

void GrpcBoard::on_enter(int rank, const FrameHeader& header, Message& frame) {
  Unpacker unpacker(frame);
  const auto epoch = unpacker.get<std::int64_t>();
  std::vector<std::int64_t> counts;
  const CollectiveCall call = unpack_call(unpacker, counts);
  std::vector<std::byte> payload(unpacker.left());
  unpacker.read(payload.data(), payload.size());

  const std::lock_guard lock(mutex_);
  record(rank).last = call;
  ++record(rank).calls;
  if (record(rank).returned < epoch - 1) {
    record(rank).returned = epoch - 1;
    check_left();
  }
  if (reason_ || epoch < epoch_) return;
  Slot* slot = find(rank, call, epoch);
  if (!slot) slot = open(rank, call, counts, epoch);
  if (!check_agreement(*slot, rank, call, counts)) return;
  slot->payloads[static_cast<std::size_t>(rank)] = std::move(payload);
  seat(*slot, rank, header.serial);
  if (check_left(*slot)) run_if_all_entered(*slot);
}

void GrpcBoard::on_data(int rank, const FrameHeader& header, Message& frame) {
  std::unique_lock lock(mutex_);
  const auto found = record(rank).slots.find(header.serial);
  if (found == record(rank).slots.end()) return;
  Slot& slot = *found->second;
  if (slot.seats[static_cast<std::size_t>(rank_)].presence != Presence::entered || slot.over() ||
      slot.is(Slot::State::failed))
    return;
  slot.busy = true;
  lock.unlock();
  const auto work = [&] {
    slot.transfer.receive(rank, static_cast<Phase>(header.phase),
                          static_cast<std::int64_t>(header.offset), frame, slot);
  };
  std::exception_ptr broken;
  try {
    work();
  } catch (...) {
    broken = std::current_exception();
  }
  lock.lock();
  slot.busy = false;
  if (broken) std::rethrow_exception(broken);
  if (slot.is(Slot::State::failed)) changed_.notify_all();
  finish_if_complete(slot);
}

void GrpcBoard::abort(std::exception_ptr reason) noexcept {
  if (!reason)
    reason = std::make_exception_ptr(
        PeerError(message("Communicator::abort", "no reason was given"), SourceLocation{}));
  const std::lock_guard lock(mutex_);
  end(std::move(reason));
}

void GrpcBoard::returned() {
  const std::lock_guard lock(mutex_);
  record(rank_).returned = epoch_;
  FrameHeader header{.kind = FrameKind::returned};
  header.offset = static_cast<std::uint64_t>(epoch_);
  if (!reason_) links_.send_to_all(Packer(header).take());
}

void GrpcBoard::begin_epoch() {
  const std::lock_guard lock(mutex_);
  if (reason_) std::rethrow_exception(reason_);
  for (const Slot* slot : live_)
    if (slot->held)
      throw FailedPrecondition(
          message("GrpcGroup::begin_epoch", "expected no handle left, but ", slot->call.to_string(),
                  " has one; wait for it or destroy it first"),
          SourceLocation{});
  ++epoch_;
  const std::vector<Slot*> live = live_;
  for (Slot* slot : live)
    if (slot->epoch < epoch_) recycle(*slot);
  check_left();
}

void GrpcBoard::leave() noexcept {
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    failed = reason_ != nullptr;
  }
  links_.leave(Deadline::after(failed ? 1s : 2s));
}

}  // namespace lockstep
