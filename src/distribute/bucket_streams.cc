// SPDX-License-Identifier: Apache-2.0
#include "distribute/bucket_streams.h"

#include "distribute/bucket_fault.h"

namespace lockstep {

BucketStreams::BucketStreams(Device device)
    : compute_(compute_stream(device)), communication_(communication_stream(device)) {}

void BucketStreams::follow_backward() {
  const BucketFault fault = injected_bucket_fault;
  if (fault == BucketFault::no_wait_for_backward) return;
  if (fault == BucketFault::wait_before_record) gradients_.hold(communication_);
  gradients_.record(compute_);
  if (fault != BucketFault::wait_before_record) gradients_.hold(communication_);
}

void BucketStreams::lead_update() {
  if (injected_bucket_fault == BucketFault::no_wait_for_reduction) return;
  sums_.record(communication_);
  sums_.hold(compute_);
}

}  // namespace lockstep
