// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/thread.h>
#include <lockstep/comm/communicator.h>

#include <chrono>
#include <memory>

namespace lockstep {

// What a rank does while it waits for the others.
class LOCKSTEP_EXPORT WaitPolicy {
 public:
  virtual ~WaitPolicy() = default;
  // Called in every round of a waiting rank, in its thread and without a lock held; may block, as
  // long as it returns when the rank should look again. `backoff` belongs to this wait: the default
  // policy is backoff.pause(). True lets the waiter read its clock. Must not throw.
  virtual bool pause(int rank, Backoff& backoff) noexcept = 0;
};

struct InProcessOptions {
  std::chrono::milliseconds collective_timeout =
      std::chrono::minutes(10);                                     // of wait() without a deadline
  std::chrono::milliseconds warn_every = std::chrono::seconds(30);  // a waiter logs who is missing
  WaitPolicy* wait_policy = nullptr;  // not owned, outlives the group; null: spin if cores suffice
};

// Communicators for `size` ranks that are threads of one process. No threads of its own: a rank
// does its share of every collective that all ranks have entered whenever it makes a call, asks or
// waits, and a waiting rank does the shares of ranks that are busy elsewhere. Sums follow the
// canonical tree in every dtype. Nothing is allocated once every slot has been used.
class LOCKSTEP_EXPORT InProcessGroup {
 public:
  // Throws InvalidArgument unless size >= 1.
  explicit InProcessGroup(int size, InProcessOptions options = {});
  ~InProcessGroup();  // no handle may be left
  InProcessGroup(const InProcessGroup&) = delete;
  InProcessGroup& operator=(const InProcessGroup&) = delete;

  int size() const noexcept;
  // The communicator of a rank, valid as long as the group. Throws InvalidArgument out of range.
  Communicator& rank(int rank);

  // Forgets the last epoch: its reason, its unfinished collectives, who returned and what was seen.
  // Call it while no rank is inside; throws FailedPrecondition when handles are left.
  void begin_epoch();

  // Says that this rank's step is over: it makes no more calls in this epoch. If others have
  // entered a collective that it has not, the epoch ends with a PeerError that names it.
  void returned(int rank);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
