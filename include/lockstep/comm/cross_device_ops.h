// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// How the accelerators of one process bring their values together, by TensorFlow's names. CPUs add in
// memory.
enum class CrossDeviceOps {
  // NCCL between GPUs, by way of the host where this build has no NCCL, which is warned of.
  automatic,
  // NCCL, or Unavailable; FailedPrecondition for CPUs.
  nccl_all_reduce,
  // Values are copied to the host, added there in the order in which CPUs add them, and copied back:
  // slower, the same bits in every run and on every number of GPUs as on CPUs.
  reduction_to_one_device
};

}  // namespace lockstep
