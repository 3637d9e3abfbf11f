// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace lockstep {

// Ways in which the reduction of buckets on accelerators could be wrong. Tests inject one to see
// that the fake device, or the other ranks, find it; nothing else sets it.
enum class BucketFault {
  none,
  no_wait_for_backward,   // the all-reduce may read gradients before they are written
  no_wait_for_reduction,  // the update may read sums before they are there
  wait_before_record,     // the all-reduce waits for an event that is only then recorded
  other_order,            // rank 1 submits its second bucket before its first
  short_count,            // rank 1's first bucket is one element short
  skipped_bucket          // rank 1 never submits its first bucket
};
inline std::atomic<BucketFault> injected_bucket_fault{BucketFault::none};

}  // namespace lockstep
