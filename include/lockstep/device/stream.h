// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <lockstep/base/export.h>
#include <lockstep/device/device.h>

namespace lockstep {

// An ordered queue of work on a device: a value that names it. CPUs run work at once, in the
// calling thread, so their stream carries no state; on accelerators `native` is the runtime's own
// handle, work is put into the queue and runs later, and queues run beside each other unless an
// Event orders them.
struct Stream {
  Device device;
  void* native = nullptr;
  friend bool operator==(const Stream&, const Stream&) = default;
};

// A device's two queues: ops run in the first, in program order; collectives that run beside them in
// the second. Throw Unavailable for a device that is not there.
LOCKSTEP_EXPORT Stream compute_stream(Device device);
LOCKSTEP_EXPORT Stream communication_stream(Device device);

// Returns when the work put into the stream so far is done; at once on a CPU. Throws what failed in
// it, and DeadlineExceeded.
LOCKSTEP_EXPORT void synchronize(const Stream& stream, Deadline deadline);
// The same with a deadline of ten minutes.
LOCKSTEP_EXPORT void synchronize(const Stream& stream);

}  // namespace lockstep
