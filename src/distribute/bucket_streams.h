// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/event.h>

namespace lockstep {

// Orders a replica's two streams around the reduction of its buckets, without the host waiting for
// either: collectives come behind the gradients they read, and the update behind all collectives.
// Of a CPU, whose work is done when it is put, it orders nothing.
class BucketStreams {
 public:
  explicit BucketStreams(Device device);

  // Collectives put from now on come behind what the compute stream holds so far.
  void follow_backward();
  // What the compute stream gets from now on comes behind all collectives so far.
  void lead_update();
  const Stream& communication() const { return communication_; }

 private:
  const Stream compute_, communication_;
  Event gradients_, sums_;
};

}  // namespace lockstep
