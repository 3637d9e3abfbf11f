// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/comm/communicator.h>
#include <lockstep/comm/in_process.h>

#include <memory>

namespace lockstep {

// Communicators for the replicas of one process that is one worker of several: local ranks 0 to
// local_size - 1 are global ranks worker * local_size + i of worker count * local_size. A collective
// runs among the local ranks first, then once between the workers, and the result is shared out
// locally. All workers have the same local_size.
//
// If local_size is a power of two, sums have the bits of one group of all ranks. The local rank that
// comes last to a collective does the local part (ranks that wait help) and starts the part between
// workers, so that it is under way while all go on computing.
//
// A failure among the local ranks aborts `between`, and one between workers ends the local epoch, so
// that every rank of every worker gets the reason. Errors between workers name ranks of `between`.
class LOCKSTEP_EXPORT HierarchicalGroup {
 public:
  // `between` is this worker's end of a group with one rank per worker; not owned, outlives the
  // group. Null for a single worker: the group is then an InProcessGroup. Throws InvalidArgument
  // unless local_size >= 1.
  HierarchicalGroup(int local_size, Communicator* between, InProcessOptions options = {});
  ~HierarchicalGroup();  // no handle may be left
  HierarchicalGroup(const HierarchicalGroup&) = delete;
  HierarchicalGroup& operator=(const HierarchicalGroup&) = delete;

  int local_size() const noexcept;
  // The communicator of a local rank, valid as long as the group; its rank() and size() are global.
  // Throws InvalidArgument out of range.
  Communicator& local_rank(int rank);

  // As InProcessGroup's, for the local ranks. What the workers should know of epochs, they are told
  // by the owner of `between`.
  void begin_epoch();
  void returned(int local_rank);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
