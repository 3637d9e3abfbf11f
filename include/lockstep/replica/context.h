// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/replica_group.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>

namespace lockstep {

// A thread is in one of four contexts: the default replica context (no strategy: a group of one),
// the cross-replica context of an open scope or merge_call, the replica context of a run, or that of
// an update, a cross-replica context in which variables are one of their components.

// Inside Strategy::scope() or a merge_call's function, outside run.
LOCKSTEP_EXPORT bool in_cross_replica_context() noexcept;
// A strategy's scope is open or a run of one is active in the calling thread.
LOCKSTEP_EXPORT bool has_strategy() noexcept;
// The calling thread's replica context: null in cross-replica context, the default context (replica
// 0 of 1) without a strategy.
LOCKSTEP_EXPORT ReplicaContext* get_replica_context() noexcept;
// The same; throws FailedPrecondition "[op] ..." in cross-replica context, and in a thread that
// inherited the context of a step that is over.
LOCKSTEP_EXPORT ReplicaContext& require_replica_context(const char* op, SourceLocation at);

// Puts the calling thread into a context while it lives; contexts nest, and end in that thread, the
// innermost first. For strategies.
class [[nodiscard]] LOCKSTEP_EXPORT ContextScope {
 public:
  // Cross-replica context of a group.
  explicit ContextScope(std::shared_ptr<ReplicaGroup> group) noexcept;
  // Replica context of a group; `replica` must outlive the scope.
  ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica) noexcept;
  // Context of an update of the components of local replica `component`.
  ContextScope(std::shared_ptr<ReplicaGroup> group, std::size_t component) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // No other scope has been opened in the calling thread since, or all of them are closed.
  bool is_innermost() const noexcept;

 private:
  using Open = std::shared_ptr<std::atomic<bool>>;
  ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica, Open open) noexcept;

  std::shared_ptr<ReplicaGroup> group_;
  ReplicaContext* replica_;
  std::optional<std::size_t> component_ = {};  // of an update
  ContextScope* outer_;
  Open open_;  // true until the scope is closed; made when its context is first inherited
  bool inherited_ = false;  // open_ tells of another thread's scope
  friend struct ContextAccess;
};

template <class F, class... Args>
decltype(auto) ReplicaContext::update(Variable variable, const F& f, const Args&... args) {
  std::optional<ContextScope> own;
  if (const auto& group = group_of(variable))
    own.emplace(group, static_cast<std::size_t>(local_index()));
  return f(variable, args...);
}

// Hands the calling thread's replica context on to threads that the step function starts:
//
//   std::thread helper([context = ReplicaContext::Inherit()] {
//     const auto entered = context.enter();  // while it lives, this thread is in the replica
//     ...
//   });
//
// The threads of a replica may read variables at the same time, but do all else by turns
// (collectives, assignments, random numbers), and are to be joined before the step function
// returns: what they do through the context later throws FailedPrecondition. Tapes are not handed
// on. Without a strategy there is nothing to hand on: each thread has a default context.
class [[nodiscard]] LOCKSTEP_EXPORT ReplicaContext::Inherit {
 public:
  // Throws FailedPrecondition in cross-replica context. A value: copies are for the same step.
  explicit Inherit(SourceLocation at = SourceLocation::current());

  class Entered;
  // Throws FailedPrecondition when the step is over.
  Entered enter(SourceLocation at = SourceLocation::current()) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;  // null: nothing to hand on
};

// The calling thread is in an inherited context while it lives.
class [[nodiscard]] LOCKSTEP_EXPORT ReplicaContext::Inherit::Entered {
 public:
  ~Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  friend class Inherit;
  struct Scopes;
  explicit Entered(std::unique_ptr<Scopes> scopes) noexcept;
  std::unique_ptr<Scopes> scopes_;
};

}  // namespace lockstep
