// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/context.h>

#include <lockstep/base/check.h>

#include <utility>

#include "replica/default_context.h"

namespace lockstep {
namespace {

thread_local const ContextScope* innermost = nullptr;

}  // namespace

struct ContextAccess {
  static const std::shared_ptr<ReplicaGroup>& group(const ContextScope& scope) {
    return scope.group_;
  }
  static ReplicaContext* replica(const ContextScope& scope) { return scope.replica_; }
  static const ContextScope* outer(const ContextScope& scope) { return scope.outer_; }
};

ReplicaGroup::~ReplicaGroup() = default;

ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group) noexcept
    : group_(std::move(group)), replica_(nullptr), outer_(std::exchange(innermost, this)) {}
ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica) noexcept
    : group_(std::move(group)), replica_(&replica), outer_(std::exchange(innermost, this)) {}
ContextScope::~ContextScope() { innermost = outer_; }

bool has_strategy() noexcept { return innermost != nullptr; }
bool in_cross_replica_context() noexcept {
  return innermost && !ContextAccess::replica(*innermost);
}

bool inside_run() noexcept {
  for (const ContextScope* scope = innermost; scope; scope = ContextAccess::outer(*scope))
    if (ContextAccess::replica(*scope)) return true;
  return false;
}

const std::shared_ptr<ReplicaGroup>& current_replica_group() noexcept {
  static const std::shared_ptr<ReplicaGroup> none;
  return innermost ? ContextAccess::group(*innermost) : none;
}

ReplicaContext* get_replica_context() noexcept {
  return innermost ? ContextAccess::replica(*innermost) : &default_replica_context();
}

ReplicaContext& require_replica_context(const char* op, SourceLocation at) {
  if (ReplicaContext* context = get_replica_context()) return *context;
  throw FailedPrecondition(
      message(op,
              "expected a replica context, got the cross-replica context of a "
              "scope or merge_call; call it in the function given to Strategy::run"),
      at);
}

}  // namespace lockstep
