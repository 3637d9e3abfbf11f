// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cluster/resolver.h>

#include <utility>

namespace lockstep {

ClusterResolver::~ClusterResolver() = default;

std::string ClusterResolver::master(SourceLocation at) const {
  const ClusterSpec spec = cluster_spec();
  std::size_t num_tasks = 0;
  for (const auto& [job, addresses] : spec.jobs()) num_tasks += addresses.size();
  const std::optional<Task> own = task();
  if (num_tasks < 2 || !own) return "";
  const std::string scheme = rpc_layer();
  return (scheme.empty() ? "" : scheme + "://") + spec.task_address(*own, at);
}

SimpleClusterResolver::SimpleClusterResolver(ClusterSpec spec, std::optional<Task> task,
                                             std::string rpc_layer)
    : spec_(std::move(spec)), task_(std::move(task)), rpc_layer_(std::move(rpc_layer)) {}

}  // namespace lockstep
