// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/fake/runtime.h"

namespace lockstep::fake {

// Fake accelerators "FAKE:0", "FAKE:1", ... for as long as it lives; one at a time in a process.
// They show errors of order without a GPU: see Runtime. All tensors on them must be gone before it.
class Devices {
 public:
  explicit Devices(const Options& options);
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  std::vector<std::string> names() const;
  // What was found so far after all that can run has run: races, uses of memory that is not
  // allocated, waits for events that were not recorded, ranks that disagree, deadlocks. Each once.
  std::vector<std::string> findings();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// Null where there is none.
Accelerator* device(int index);
int device_count();
// The runtime of all of them; throws Unavailable without Devices.
Runtime& runtime();
// The stream's queue.
Queue* queue_of(const Stream& stream);

}  // namespace lockstep::fake
