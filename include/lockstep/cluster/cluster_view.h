// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/cluster/cluster_spec.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// One of the processes that train together.
struct LOCKSTEP_EXPORT ClusterMember {
  Task task;
  std::string address;  // empty for a process that trains by itself

  std::string to_string() const;  // "worker 1 (host1:2222)"
};

// A cluster seen from one of its tasks: who trains with it, in which order, and who is chief. An
// immutable value.
//
// Ranks: the chief comes first, then the workers by index; without a chief, worker 0 is the chief.
// An evaluator never trains with the others: it sees a cluster of its own, of which it is the only
// worker and the chief, whether or not the spec lists it. Tasks of job "ps" may be listed and are
// left out, with a warning in the log.
class LOCKSTEP_EXPORT ClusterView {
 public:
  // A process that trains by itself: worker 0 of 1.
  ClusterView();
  // The view of `task`; of an empty spec, a process that trains by itself, whatever the task.
  // Throws InvalidArgument, naming what is there and what to do: when there is no task; when its
  // type is "ps" or unknown, or the spec does not list it (an evaluator need not be listed); when
  // the spec has an unknown job, two chiefs, two evaluators, or a hole in a job's numbers.
  explicit ClusterView(const ClusterSpec& spec, const std::optional<Task>& task,
                       SourceLocation at = SourceLocation::current());

  const Task& task() const { return workers_[static_cast<std::size_t>(rank_)].task; }
  // Where the others reach this process; empty when there are no others to do so.
  const std::string& address() const { return workers_[static_cast<std::size_t>(rank_)].address; }
  int rank() const { return rank_; }
  int num_workers() const { return static_cast<int>(workers_.size()); }
  // The worker that writes checkpoints and summaries: rank 0.
  bool is_chief() const { return rank_ == 0; }
  // Everyone that trains together, this process included, by rank; never empty.
  const std::vector<ClusterMember>& workers() const { return workers_; }

  // One line for logs: "worker 1 (host1:2222), rank 1 of 2, chief worker 0 (host0:2222)".
  std::string to_string() const;

 private:
  std::vector<ClusterMember> workers_;
  int rank_ = 0;
};

}  // namespace lockstep
