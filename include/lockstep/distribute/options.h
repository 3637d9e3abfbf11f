// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/cross_device_ops.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// How the replicas of a process take turns.
enum class ReplicaThreads {
  concurrent,    // all at once
  one_at_a_time  // in replica order, handing over where they wait for each other: deterministic
};

// TensorFlow's CommunicationOptions.
struct CommunicationOptions {
  // Gradients are reduced in buckets of about this many bytes; 0 chooses (1 MiB in a process).
  std::int64_t bytes_per_pack = 0;
  // In place of that: in so many buckets of about one size, of each dtype; 0: one for each gradient.
  std::optional<int> num_packs = {};
  // How long a collective may wait for a replica that is alive but does not come.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

struct MirroredOptions {
  // Device names, one replica each: "CPU:0", "CPU:1", ...; "GPU:*" stands for all GPUs. Empty: all
  // GPUs, or one logical CPU per available core when there is none.
  std::vector<std::string> devices = {};
  // "GPU:*" with no GPU present uses the CPUs instead of throwing Unavailable.
  bool fallback_to_cpu = false;
  ReplicaThreads replica_threads = ReplicaThreads::concurrent;
  CrossDeviceOps cross_device_ops = CrossDeviceOps::automatic;
  CommunicationOptions communication = {};
  // Of all random numbers drawn in the strategy's scope and replicas.
  std::uint64_t seed = 0;
};

struct OneDeviceOptions {
  std::string device = "CPU:0";
  std::uint64_t seed = 0;
};

}  // namespace lockstep
