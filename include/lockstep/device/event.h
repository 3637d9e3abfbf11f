// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/device/stream.h>

#include <memory>

namespace lockstep {

// A point in a stream's order, for other streams of the same kind of device to wait for: how an
// all-reduce is told that its gradients are there, and an optimizer that they are summed. Never
// blocks the caller. On CPUs, where work is done when it is put, without effect. One thread at a
// time may use an event.
class LOCKSTEP_EXPORT Event {
 public:
  // The point is behind all work put into `stream` so far. An event may be recorded again; who
  // waits already keeps waiting for the earlier point.
  void record(const Stream& stream);

  // Work put into `stream` from now on starts when the point last recorded is reached. Before any
  // recording there is nothing to wait for: a mistake that the fake device reports.
  void hold(const Stream& stream) const;

 private:
  std::shared_ptr<void> point_;  // the runtime's; null: none recorded, or on a CPU
};

}  // namespace lockstep
