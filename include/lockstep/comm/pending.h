// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <lockstep/base/export.h>

#include <optional>
#include <utility>

namespace lockstep {

// What a communicator keeps behind a Pending. After wait() has returned or thrown, and in place of
// a wait() that never comes, release() is called once, last.
class LOCKSTEP_EXPORT PendingCall {
 public:
  virtual bool done() = 0;
  virtual void wait(std::optional<Deadline> deadline) = 0;
  virtual void release() noexcept = 0;

 protected:
  ~PendingCall() = default;
};

// The handle of a collective under way: a resource of the rank that made the call. Buffers of the
// call must stay valid, inputs unchanged and outputs untouched, until wait() has returned or
// thrown, done() has returned true, or the handle is destroyed. One thread at a time may use a
// handle; it must not outlive its communicator.
//
// Destroying a handle without waiting is safe and brief. If every rank has come, the collective is
// completed first. Otherwise this rank withdraws from it: its buffers are free at once, the
// collective will never complete, and the other ranks learn why from abort(), or from a PeerError
// once this rank's step is over, or from their deadline.
class [[nodiscard]] Pending {
 public:
  Pending() = default;  // nothing to wait for
  explicit Pending(PendingCall& call) : call_(&call) {}
  Pending(Pending&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Pending& operator=(Pending&& other) noexcept {
    if (this != &other) {
      if (call_) call_->release();
      call_ = std::exchange(other.call_, nullptr);
    }
    return *this;
  }
  ~Pending() {
    if (call_) call_->release();
  }

  // True once the buffers are the caller's again: outputs complete, inputs no longer read, or the
  // collective failed. Never blocks and never throws for a failed collective; wait() then does.
  bool done() { return !call_ || call_->done(); }

  // Returns when this rank's outputs are complete and its inputs are no longer read; at once for an
  // empty handle. The handle is empty afterwards, however it ends. A collective completes on every
  // rank or fails on every rank. Throws the reason of the epoch's end: what abort() was given, a
  // PeerError (ranks disagree, a rank has left), or DeadlineExceeded naming the ranks that have not
  // come and what they were last seen doing; passing the deadline ends the epoch for all ranks.
  void wait(Deadline deadline) { finish(deadline); }
  // The same with the communicator's collective_timeout, counted from now.
  void wait() { finish(std::nullopt); }

 private:
  void finish(std::optional<Deadline> deadline) {
    if (!call_) return;
    Pending over = std::move(*this);  // releases the call on every way out
    over.call_->wait(deadline);
  }

  PendingCall* call_ = nullptr;
};

}  // namespace lockstep
