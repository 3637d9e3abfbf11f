// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/device.h>

namespace lockstep {

// An ordered queue of work on a device: a value that names it. CPUs run work at once, in the
// calling thread, so their stream carries no state; on accelerators `native` is the runtime's own
// handle.
struct Stream {
  Device device;
  void* native = nullptr;
};

}  // namespace lockstep
