// SPDX-License-Identifier: Apache-2.0
#include "comm/hierarchical_board.h"

#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>

#include <algorithm>
#include <cstring>

#include "comm/tree_sum.h"

namespace lockstep {

HierarchicalBoard::Joint::Joint(HierarchicalBoard& board)
    : ranks(new Handle[static_cast<std::size_t>(board.local_size())]),
      outputs(static_cast<std::size_t>(board.local_size())) {
  for (int rank = 0; rank < board.local_size(); ++rank) {
    ranks[rank].board = &board;
    ranks[rank].joint = this;
    ranks[rank].rank = rank;
  }
}

HierarchicalBoard::HierarchicalBoard(InProcessGroup& local, Communicator& between,
                                     InProcessOptions options)
    : local_(local), between_(between), options_(options) {}

HierarchicalBoard::~HierarchicalBoard() = default;

HierarchicalBoard::Joint& HierarchicalBoard::sit_down(int rank, const CollectiveCall& call,
                                                      void* output, bool& last,
                                                      const EnterLocal& enter_local) {
  const std::lock_guard lock(mutex_);
  Joint& joint = find(rank, call);
  Handle& handle = joint.ranks[rank];
  try {
    check_agreement(joint, call);
    handle.local = enter_local(joint);
  } catch (const InvalidArgument&) {
    if (joint.entered == 0) recycle(joint);
    throw;
  } catch (...) {
    if (joint.entered == 0) recycle(joint);
    abort(rank, std::current_exception());
    throw;
  }
  handle.seated = true;
  joint.outputs[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(output);
  ++joint.handles;
  last = ++joint.entered == local_size();
  return joint;
}

// The local group compares all but what it is not told: that a sum is to become a mean.
void HierarchicalBoard::check_agreement(const Joint& joint, const CollectiveCall& call) {
  if (call.agrees_with(joint.call)) return;
  throw PeerError(message(api_name(call.kind), "ranks disagree: one called ",
                          joint.call.to_string(), ", another ", call.to_string(),
                          "; all ranks must make the same calls with the same keys"),
                  call.at);
}

// The oldest joint with this key that the rank has not entered yet, as the local group has it.
HierarchicalBoard::Joint& HierarchicalBoard::find(int rank, const CollectiveCall& call) {
  for (Joint* joint : live_)
    if (joint->call.has_key(call.channel, call.sequence) && !joint->ranks[rank].seated)
      return *joint;
  if (free_.empty()) {
    joints_.push_back(std::make_unique<Joint>(*this));
    live_.reserve(joints_.size());
    free_.reserve(joints_.size());
    free_.push_back(joints_.back().get());
  }
  Joint& joint = *free_.back();
  free_.pop_back();
  live_.push_back(&joint);
  joint.call = call;
  return joint;
}

void HierarchicalBoard::recycle(Joint& joint) noexcept {
  for (int rank = 0; rank < local_size(); ++rank) joint.ranks[rank].seated = false;
  joint.entered = joint.handles = 0;
  joint.failure = nullptr;
  joint.stage.store(Stage::local, std::memory_order_relaxed);
  std::erase(live_, &joint);
  free_.push_back(&joint);
}

// All local ranks have come, so the local part ends without waiting for anybody.
void HierarchicalBoard::go_between(Joint& joint, int rank, const EnterBetween& enter_between) {
  const std::lock_guard lock(joint.mutex);
  try {
    joint.ranks[rank].local.wait();
    joint.between = enter_between();
    joint.stage.store(Stage::between, std::memory_order_release);
  } catch (...) {
    fail(joint, rank, std::current_exception());
    throw;
  }
}

void HierarchicalBoard::fail(Joint& joint, int rank, const std::exception_ptr& reason) noexcept {
  joint.failure = reason;
  joint.stage.store(Stage::failed, std::memory_order_release);
  abort(rank, reason);
}

void HierarchicalBoard::abort(int rank, const std::exception_ptr& reason) noexcept {
  local_.rank(rank).abort(reason);
  between_.abort(reason);
}

void HierarchicalBoard::finish_between(Joint& joint, int rank,
                                       std::optional<Deadline> deadline) noexcept {
  try {
    if (deadline)
      joint.between.wait(*deadline);
    else
      joint.between.wait();
    share_out(joint);
    joint.stage.store(Stage::finished, std::memory_order_release);
  } catch (...) {
    fail(joint, rank, std::current_exception());
  }
}

Elements HierarchicalBoard::own_parts(Joint& joint) const {
  const std::int64_t count = joint.call.count / between_.size();
  const std::size_t begin =
      static_cast<std::size_t>(between_.rank() * count) * size_of(joint.call.dtype);
  return {joint.scratch.data() + begin, count, joint.call.dtype};
}

// What is final is in the first rank's output, or in the scratch memory.
void HierarchicalBoard::share_out(const Joint& joint) const {
  const CollectiveCall& call = joint.call;
  const int ranks = between_.size() * local_size();
  const bool scattered = call.kind == CollectiveKind::reduce_scatter;
  const Elements own = scattered ? own_parts(const_cast<Joint&>(joint)) : Elements{};
  std::byte* const first = scattered ? static_cast<std::byte*>(own.data) : joint.outputs[0];
  std::int64_t count = scattered ? own.count : call.count;
  if (call.kind == CollectiveKind::all_gather && !call.uneven) count *= ranks;
  if (call.op == ReduceOp::mean) divide(call.dtype, first, count, ranks);

  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(call.dtype);
  const std::size_t part = scattered ? bytes / joint.outputs.size() : bytes;
  if (part == 0 || call.kind == CollectiveKind::barrier) return;
  for (std::size_t rank = 0; rank < joint.outputs.size(); ++rank) {
    const std::byte* const from = scattered ? first + rank * part : first;
    if (joint.outputs[rank] != from) std::memcpy(joint.outputs[rank], from, part);
  }
}

bool HierarchicalBoard::done(Handle& handle) {
  Joint& joint = *handle.joint;
  if (joint.is(Stage::local)) {
    if (!handle.local.done()) return false;
    try {
      handle.local.wait();
    } catch (...) {
      const std::lock_guard lock(joint.mutex);
      fail(joint, handle.rank, std::current_exception());
    }
  }
  if (joint.is(Stage::between)) {
    const std::unique_lock lock(joint.mutex, std::try_to_lock);
    if (lock && joint.is(Stage::between) && joint.between.done())
      finish_between(joint, handle.rank, std::nullopt);
  }
  return joint.is(Stage::finished) || joint.is(Stage::failed);
}

void HierarchicalBoard::wait(Handle& handle, std::optional<Deadline> deadline) {
  Joint& joint = *handle.joint;
  const Deadline limit = deadline ? *deadline : Deadline::after(options_.collective_timeout);
  try {
    handle.local.wait(limit);
  } catch (...) {
    const std::lock_guard lock(joint.mutex);
    fail(joint, handle.rank, std::current_exception());
    throw;
  }
  // Who came last is about to start the part between workers, and who waits for that has the lock.
  std::unique_lock lock(joint.mutex, std::defer_lock);
  for (Backoff backoff(false); joint.is(Stage::local) || !lock.try_lock();)
    if (backoff.pause() && limit.passed()) break;
  if (!lock)
    throw DeadlineExceeded(message(api_name(joint.call.kind), joint.call.to_string(),
                                   " is waited for by another replica of this worker, for longer"),
                           joint.call.at);
  if (joint.is(Stage::between)) finish_between(joint, handle.rank, deadline);
  if (joint.is(Stage::failed)) std::rethrow_exception(joint.failure);
}

void HierarchicalBoard::release(Handle& handle) noexcept {
  Joint& joint = *handle.joint;
  bool withdrawn = false;
  {
    const std::lock_guard lock(mutex_);
    withdrawn = joint.entered < local_size();
    if (withdrawn) handle.local = Pending();
  }
  if (!withdrawn && !joint.is(Stage::finished)) {
    try {
      wait(handle, std::nullopt);
    } catch (...) {  // the other ranks know
    }
  }
  const std::lock_guard lock(mutex_);
  if (--joint.handles == 0 && joint.is(Stage::finished)) recycle(joint);
}

void HierarchicalBoard::begin_epoch() {
  const std::lock_guard lock(mutex_);
  const std::vector<Joint*> live = live_;
  for (Joint* joint : live) {
    if (joint->is(Stage::between))
      throw FailedPrecondition(
          message("HierarchicalGroup::begin_epoch", "expected no handle left, but ",
                  joint->call.to_string(), " has one; wait for it or destroy it first"),
          SourceLocation{});
    recycle(*joint);
  }
}

}  // namespace lockstep
