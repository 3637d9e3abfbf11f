// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/strategy.h>
#include <lockstep/replica/context.h>

#include <string>
#include <vector>

namespace lockstep::testing {

// "CPU:0" ... of `count` replicas.
inline std::vector<std::string> cpus(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

// A MirroredStrategy of `count` logical CPUs.
inline MirroredStrategy replicas(int count, ReplicaThreads threads = ReplicaThreads::concurrent,
                                 std::int64_t bytes_per_pack = 0) {
  return MirroredStrategy({.devices = cpus(count),
                           .replica_threads = threads,
                           .communication = {.bytes_per_pack = bytes_per_pack}});
}

// This replica's global number, in a step function.
inline int replica_index() { return get_replica_context()->replica_index(); }
inline float replica_id() { return static_cast<float>(replica_index()); }

// The result of each local replica as a number.
template <class T = double>
std::vector<T> items(const PerReplica<Tensor>& values) {
  std::vector<T> numbers;
  for (const Tensor& value : values) numbers.push_back(value.item<T>());
  return numbers;
}
template <class T = double>
std::vector<T> items(const std::vector<Tensor>& values) {
  std::vector<T> numbers;
  for (const Tensor& value : values) numbers.push_back(value.item<T>());
  return numbers;
}

inline constexpr ReplicaThreads kBothModes[] = {ReplicaThreads::concurrent,
                                                ReplicaThreads::one_at_a_time};
inline std::string name_of(ReplicaThreads threads) {
  return threads == ReplicaThreads::concurrent ? "concurrent" : "one_at_a_time";
}

}  // namespace lockstep::testing
