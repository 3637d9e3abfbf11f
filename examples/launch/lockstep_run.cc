// SPDX-License-Identifier: Apache-2.0
// lockstep-run -n N program...: the workers of a cluster on this machine; --help says more.
#include <lockstep/cluster.h>

#include <exception>

#include "guardian.h"
#include "options.h"
#include "ports.h"
#include "supervisor.h"

namespace {

// The cluster of all, and the task of each rank.
struct Plan {
  lockstep::ClusterSpec cluster;
  std::vector<lockstep::Task> tasks;
};

Plan plan_of(const std::vector<std::string>& addresses, bool with_chief) {
  std::map<std::string, std::vector<std::string>> jobs;
  Plan plan;
  for (const std::string& address : addresses) {
    const char* type = with_chief && plan.tasks.empty() ? "chief" : "worker";
    plan.tasks.push_back({type, static_cast<int>(jobs[type].size())});
    jobs[type].push_back(address);
  }
  plan.cluster = lockstep::ClusterSpec(jobs);
  return plan;
}

}  // namespace

int main(int argc, char** argv) try {
  const launch::Options options = launch::parse_options(argc, argv);
  launch::SignalQueue signals;
  launch::Guardian guardian(static_cast<std::size_t>(options.num_workers));
  const launch::ReservedPorts ports(options.num_workers);
  const Plan plan = plan_of(ports.addresses(), options.chief);
  launch::Supervisor supervisor(signals, guardian, options.grace);
  for (const lockstep::Task& task : plan.tasks)
    supervisor.start({.name = task.to_string(),
                      .tf_config = lockstep::to_tf_config(plan.cluster, task),
                      .rank = static_cast<int>(&task - plan.tasks.data())},
                     options.command);
  return supervisor.wait();
} catch (const std::exception& error) {
  launch::say(error.what());
  return 1;
}
