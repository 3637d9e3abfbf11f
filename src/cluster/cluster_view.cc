// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/cluster/cluster_view.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cluster/in_quotes.h"

namespace lockstep {
namespace {

using cluster::in_quotes;

constexpr std::string_view kCall = "ClusterView";
constexpr std::array<std::string_view, 4> kJobs = {"chief", "worker", "evaluator", "ps"};

bool is_known(std::string_view type) {
  return std::find(kJobs.begin(), kJobs.end(), type) != kJobs.end();
}

// What to do about a type that is not one of ours.
std::string_view advice_for(std::string_view type) {
  return type == "master" ? "; what TensorFlow 1 called master is chief today" : "";
}

// "chief (1 task), worker (2 tasks)".
std::string jobs_of(const ClusterSpec& spec) {
  std::string text;
  for (const auto& [job, addresses] : spec.jobs())
    text += (text.empty() ? "" : ", ") + in_quotes(job) + " (" + std::to_string(addresses.size()) +
            (addresses.size() == 1 ? " task)" : " tasks)");
  return text;
}

void check_spec(const ClusterSpec& spec, SourceLocation at) {
  for (const auto& [job, addresses] : spec.jobs()) {
    require(is_known(job), at, kCall, "the cluster has a job ", in_quotes(job),
            "; expected chief, worker and evaluator", advice_for(job));
    if (job == "ps") continue;
    require(job == "worker" || addresses.size() == 1, at, kCall, "the cluster lists ",
            addresses.size(), " tasks of job ", in_quotes(job), "; it may have one");
    const int last = addresses.rbegin()->first;
    require(static_cast<std::size_t>(last) + 1 == addresses.size(), at, kCall, "the cluster lists ",
            addresses.size(), " tasks of job ", in_quotes(job), " but numbers them up to ", last,
            "; list the addresses of all from 0 on, as every worker takes part in every step");
  }
}

void check_task(const ClusterSpec& spec, const Task& task, SourceLocation at) {
  require(task.type != "ps", at, kCall, "this process is ", task,
          ", a parameter server, and lockstep trains without: every worker holds all variables; "
          "start chief and worker tasks only");
  require(is_known(task.type), at, kCall, "this process is of job ", in_quotes(task.type),
          "; expected chief, worker or evaluator", advice_for(task.type), ". The cluster has ",
          jobs_of(spec));
  require(task.index >= 0, at, kCall, "this process is ", task, "; tasks are numbered from 0");
  const std::size_t count = spec.num_tasks(task.type);
  if (task.type == "evaluator" && count == 0) return;
  require(count > 0, at, kCall, "this process is ", task, ", but the cluster has only ",
          jobs_of(spec), "; give it the address of ", task,
          ", or start this process as one of those");
  require(static_cast<std::size_t>(task.index) < count, at, kCall, "this process is ", task,
          ", but the cluster has ", count, count == 1 ? " task" : " tasks", " of job ",
          in_quotes(task.type), ", with index ",
          count == 1 ? "0" : "0 to " + std::to_string(count - 1),
          "; correct the index, or add the address");
}

}  // namespace

std::string ClusterMember::to_string() const {
  return task.to_string() + (address.empty() ? "" : " (" + address + ")");
}

ClusterView::ClusterView() : workers_{{.task = {"worker", 0}, .address = ""}} {}

ClusterView::ClusterView(const ClusterSpec& spec, const std::optional<Task>& task,
                         SourceLocation at)
    : ClusterView() {
  if (spec.empty()) return;
  check_spec(spec, at);
  require(task.has_value(), at, kCall, "the cluster has ", jobs_of(spec),
          ", but which of its tasks this process is was not said; give the task's type and index "
          "(\"task\" in TF_CONFIG)");
  check_task(spec, *task, at);
  if (spec.num_tasks("ps") > 0)
    logging::warning(
        "the cluster lists parameter servers (job ps), which take no part in training");
  workers_.clear();
  if (task->type == "evaluator") {
    workers_.push_back({*task, spec.num_tasks("evaluator") ? spec.task_address(*task) : ""});
    return;
  }
  for (const char* job : {"chief", "worker"}) {
    const auto found = spec.jobs().find(job);
    if (found == spec.jobs().end()) continue;
    for (const auto& [index, address] : found->second) {
      if (Task{job, index} == *task) rank_ = num_workers();
      workers_.push_back({{job, index}, address});
    }
  }
}

std::string ClusterView::to_string() const {
  if (num_workers() == 1) return workers_.front().to_string() + ", by itself";
  return workers_[static_cast<std::size_t>(rank_)].to_string() + ", rank " + std::to_string(rank_) +
         " of " + std::to_string(num_workers()) + ", chief " + workers_.front().to_string();
}

}  // namespace lockstep
