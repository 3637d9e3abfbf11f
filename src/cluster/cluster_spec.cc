// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/cluster/cluster_spec.h>

#include <utility>

#include "cluster/in_quotes.h"
#include "cluster/names.h"

namespace lockstep {
namespace {

using cluster::in_quotes;

void check_addresses(const ClusterSpec::Jobs& jobs, SourceLocation at) {
  std::map<std::string_view, Task> owners;
  for (const auto& [job, addresses] : jobs) {
    require(cluster::is_job_name(job), at, "ClusterSpec", "a job is named ", in_quotes(job),
            "; name it chief, worker or evaluator");
    require(!addresses.empty(), at, "ClusterSpec", "job ", in_quotes(job),
            " lists no addresses; give one host:port per task, or leave the job out");
    for (const auto& [index, address] : addresses) {
      const Task task{job, index};
      require(index >= 0, at, "ClusterSpec", "job ", in_quotes(job), " has a task ", index,
              "; tasks are numbered from 0");
      const std::string fault = cluster::fault_of_address(address);
      require(fault.empty(), at, "ClusterSpec", "the address of ", task, " is ", in_quotes(address),
              ": ", fault, "; expected host:port, such as 10.0.0.1:2222");
      const auto [owner, is_new] = owners.emplace(address, task);
      require(is_new, at, "ClusterSpec", owner->second, " and ", task, " both have the address ",
              in_quotes(address), "; every task needs one of its own");
    }
  }
}

// "chief 0, worker 0 to 3".
std::string listed_tasks(const ClusterSpec::Jobs& jobs) {
  std::string text;
  for (const auto& [job, addresses] : jobs) {
    text += (text.empty() ? "" : ", ") + job + " " + std::to_string(addresses.begin()->first);
    if (addresses.size() > 1) text += " to " + std::to_string(addresses.rbegin()->first);
  }
  return text.empty() ? "no tasks" : text;
}

}  // namespace

std::string Task::to_string() const { return type + " " + std::to_string(index); }

ClusterSpec::ClusterSpec(
    std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs,
    SourceLocation at)
    : ClusterSpec(std::map(jobs), at) {}

ClusterSpec::ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs,
                         SourceLocation at) {
  for (const auto& [job, addresses] : jobs) {
    Addresses& numbered = jobs_[job];
    for (const std::string& address : addresses)
      numbered.emplace(static_cast<int>(numbered.size()), address);
  }
  check_addresses(jobs_, at);
}

ClusterSpec ClusterSpec::sparse(Jobs jobs, SourceLocation at) {
  check_addresses(jobs, at);
  ClusterSpec spec;
  spec.jobs_ = std::move(jobs);
  return spec;
}

std::size_t ClusterSpec::num_tasks(std::string_view job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second.size();
}

const std::string& ClusterSpec::task_address(const Task& task, SourceLocation at) const {
  const auto job = jobs_.find(task.type);
  require(job != jobs_.end(), at, "ClusterSpec::task_address", "there is no job ",
          in_quotes(task.type), "; the cluster lists ", listed_tasks(jobs_));
  const auto found = job->second.find(task.index);
  require(found != job->second.end(), at, "ClusterSpec::task_address", "there is no ", task,
          "; the cluster lists ", listed_tasks(jobs_));
  return found->second;
}

std::string ClusterSpec::to_string() const {
  std::string text;
  for (const auto& [job, addresses] : jobs_) {
    text += (text.empty() ? "" : "; ") + job + ":";
    int next = 0;
    for (const auto& [index, address] : addresses) {
      text += index == addresses.begin()->first ? " " : ", ";
      if (index != next) text += std::to_string(index) + "=";
      text += address;
      next = index + 1;
    }
  }
  return text;
}

}  // namespace lockstep
