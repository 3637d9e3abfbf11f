// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>
#include <lockstep/distribute/tpu.h>

#include <algorithm>
#include <memory>

#include "distribute/traced_replicas.h"

namespace lockstep {
namespace {

std::shared_ptr<StrategyInterface> traced(const TPUOptions& options, SourceLocation at) {
  require(options.replicas >= 0, at, "TPUStrategy", "expected 0 or more replicas, got ",
          options.replicas);
  const xla::Client& client = xla::Client::of(xla::find_plugin(options.plugin, at));
  const bool stands_in = client.platform() == "cpu" || client.platform() == "Host";
  int replicas = options.replicas;
  if (replicas == 0)
    replicas = stands_in ? std::min(available_cores(), client.num_devices()) : client.num_devices();
  require(replicas <= client.num_devices(), at, "TPUStrategy", "expected at most ",
          client.num_devices(), " replicas, as many as there are cores, got ", replicas);
  return std::make_shared<TracedReplicas>(client, replicas, options.seed);
}

}  // namespace

TPUStrategy::TPUStrategy(const TPUOptions& options, SourceLocation at)
    : Strategy(traced(options, at)) {}

}  // namespace lockstep
