// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/replica_group.h>

#include <memory>

namespace lockstep {

// A thread is in one of three contexts: the default replica context (no strategy: a group of one),
// the cross-replica context of an open scope or merge_call, or the replica context of a run.

// Inside Strategy::scope() or a merge_call's function, outside run.
LOCKSTEP_EXPORT bool in_cross_replica_context() noexcept;
// A strategy's scope is open or a run of one is active in the calling thread.
LOCKSTEP_EXPORT bool has_strategy() noexcept;
// The calling thread's replica context: null in cross-replica context, the default context (replica
// 0 of 1) without a strategy.
LOCKSTEP_EXPORT ReplicaContext* get_replica_context() noexcept;
// The same; throws FailedPrecondition "[op] ..." in cross-replica context.
LOCKSTEP_EXPORT ReplicaContext& require_replica_context(const char* op, SourceLocation at);

// Puts the calling thread into a context while it lives; contexts nest. For strategies.
class [[nodiscard]] LOCKSTEP_EXPORT ContextScope {
 public:
  // Cross-replica context of a group.
  explicit ContextScope(std::shared_ptr<ReplicaGroup> group) noexcept;
  // Replica context of a group; `replica` must outlive the scope.
  ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  std::shared_ptr<ReplicaGroup> group_;
  ReplicaContext* replica_;
  const ContextScope* outer_;
  friend struct ContextAccess;
};

}  // namespace lockstep
