// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/cluster/resolver.h>
#include <lockstep/comm/grpc.h>
#include <lockstep/distribute/options.h>
#include <lockstep/distribute/strategy.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct MultiWorkerOptions {
  // Who the workers are and which of them this process is; null: TF_CONFIG tells. Without a cluster,
  // and as an evaluator, the process trains alone.
  std::shared_ptr<const ClusterResolver> cluster = nullptr;
  // Of this worker, one replica each, as many on every worker. Empty: all GPUs, or "CPU:0" when there
  // is none.
  std::vector<std::string> devices = {};
  ReplicaThreads replica_threads = ReplicaThreads::concurrent;
  CommunicationOptions communication = {};  // the same on every worker
  // Of all random numbers drawn in the strategy's scope and replicas; the chief's counts.
  std::uint64_t seed = 0;
  // How long the workers may take to find each other.
  std::chrono::milliseconds startup_timeout = std::chrono::minutes(5);
  // A worker that gives no sign of life for so long is dead; the same on every worker.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(10);
  // Where this worker listens when that is not its address in the cluster: "0.0.0.0:2222".
  std::string listen_address = {};
  // Encrypts what the workers say to each other, and has them prove who they are. None: plain text.
  std::optional<TlsFiles> tls = {};
};

// One replica per device of every worker: the same program runs on each worker, started with its own
// TF_CONFIG (or by lockstep-run), and the constructor returns when all have found each other. Global
// replica ids count through the workers in rank order, the chief first.
//
// Collective across workers are, beside the verbs of replicas: making a variable, run, reduce, gather,
// a read of an on_read variable outside replicas, a metric's result, and taking the next batch of a
// distributed dataset. Every worker makes these calls in the same order, from one thread. All else
// outside a step concerns this worker alone: what is assigned there (a value, a learning rate) must be
// assigned on every worker alike, or their weights part.
//
// A failure on any worker ends the strategy on all, within `communication.timeout` at most: run and
// all that is collective throws it then and ever after. Workers may then be one step apart; restart
// from a checkpoint. Only a dataset that fails leaves it usable: the others get a PeerError instead of
// the batch.
class LOCKSTEP_EXPORT MultiWorkerMirroredStrategy : public Strategy {
 public:
  // Throws InvalidArgument for a cluster, a TF_CONFIG or devices that do not fit; Unavailable when a
  // device, the worker's address or gRPC is not there; PeerError when the workers differ in cluster,
  // version or options; DeadlineExceeded naming the workers that did not come in startup_timeout.
  explicit MultiWorkerMirroredStrategy(const MultiWorkerOptions& options = {},
                                       SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep
