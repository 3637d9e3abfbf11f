// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/context.h>

#include <lockstep/base/check.h>
#include <lockstep/device/device.h>
#include <lockstep/ops/random_scope.h>

#include <utility>

#include "replica/default_context.h"

namespace lockstep {
namespace {

thread_local ContextScope* innermost = nullptr;

// Of threads without a scope; null: none. Owned, and replaced while nobody else looks.
std::atomic<const std::shared_ptr<ReplicaGroup>*> process_group{nullptr};

}  // namespace

struct ContextAccess {
  static const std::shared_ptr<ReplicaGroup>& group(const ContextScope& scope) {
    return scope.group_;
  }
  static ReplicaContext* replica(const ContextScope& scope) { return scope.replica_; }
  static std::optional<std::size_t> component(const ContextScope& scope) {
    return scope.component_;
  }
  static const ContextScope* outer(const ContextScope& scope) { return scope.outer_; }
  static bool over(const ContextScope& scope) {
    return scope.inherited_ && !scope.open_->load(std::memory_order_acquire);
  }
  static const ContextScope::Open& open(ContextScope& scope) {
    if (!scope.open_) scope.open_ = std::make_shared<std::atomic<bool>>(true);
    return scope.open_;
  }
  static ContextScope inherit(const std::shared_ptr<ReplicaGroup>& group, ReplicaContext& replica,
                              const ContextScope::Open& open) {
    return ContextScope(group, replica, open);
  }
};

ReplicaGroup::~ReplicaGroup() = default;

ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group) noexcept
    : group_(std::move(group)), replica_(nullptr), outer_(std::exchange(innermost, this)) {}
ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica) noexcept
    : group_(std::move(group)), replica_(&replica), outer_(std::exchange(innermost, this)) {}
ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group, std::size_t component) noexcept
    : group_(std::move(group)),
      replica_(nullptr),
      component_(component),
      outer_(std::exchange(innermost, this)) {}
ContextScope::ContextScope(std::shared_ptr<ReplicaGroup> group, ReplicaContext& replica,
                           Open open) noexcept
    : group_(std::move(group)),
      replica_(&replica),
      outer_(std::exchange(innermost, this)),
      open_(std::move(open)),
      inherited_(true) {}
ContextScope::~ContextScope() {
  innermost = outer_;
  if (open_ && !inherited_) open_->store(false, std::memory_order_release);
}

bool ContextScope::is_innermost() const noexcept { return innermost == this; }

bool inside_scope() noexcept { return innermost != nullptr; }

void set_process_group(std::shared_ptr<ReplicaGroup> group) {
  const auto* const next = group ? new std::shared_ptr<ReplicaGroup>(std::move(group)) : nullptr;
  delete process_group.exchange(next);
}

bool has_strategy() noexcept { return innermost || process_group.load(); }
bool in_cross_replica_context() noexcept {
  return innermost ? !ContextAccess::replica(*innermost) : process_group.load() != nullptr;
}

bool inside_run() noexcept {
  for (const ContextScope* scope = innermost; scope; scope = ContextAccess::outer(*scope))
    if (ContextAccess::replica(*scope)) return true;
  return false;
}

std::optional<std::size_t> updated_component() noexcept {
  return innermost ? ContextAccess::component(*innermost) : std::nullopt;
}

const std::shared_ptr<ReplicaGroup>& current_replica_group() noexcept {
  static const std::shared_ptr<ReplicaGroup> none;
  if (innermost) return ContextAccess::group(*innermost);
  const auto* const everywhere = process_group.load();
  return everywhere ? *everywhere : none;
}

ReplicaContext* get_replica_context() noexcept {
  if (innermost) return ContextAccess::replica(*innermost);
  return process_group.load() ? nullptr : &default_replica_context();
}

void require_step(const char* op, SourceLocation at) {
  if (innermost && ContextAccess::over(*innermost)) [[unlikely]]
    throw FailedPrecondition(
        message(op,
                "the step whose context this thread inherited is over; join the thread before the "
                "step function returns"),
        at);
}

ReplicaContext& require_replica_context(const char* op, SourceLocation at) {
  require_step(op, at);
  if (ReplicaContext* context = get_replica_context()) return *context;
  throw FailedPrecondition(
      message(op,
              "expected a replica context, got the cross-replica context of a "
              "scope or merge_call; call it in the function given to Strategy::run"),
      at);
}

struct ReplicaContext::Inherit::State {
  std::shared_ptr<ReplicaGroup> group;
  ReplicaContext& replica;
  std::shared_ptr<std::atomic<bool>> open;
  Device device;
  RandomState& random;
};

struct ReplicaContext::Inherit::Entered::Scopes {
  explicit Scopes(const State& state)
      : context(ContextAccess::inherit(state.group, state.replica, state.open)),
        device(state.device),
        random(state.random) {}
  ContextScope context;
  DeviceScope device;
  RandomScope random;
};

ReplicaContext::Inherit::Inherit(SourceLocation at) {
  ReplicaContext& replica = require_replica_context("ReplicaContext::Inherit", at);
  if (!innermost) return;
  state_ = std::make_shared<const State>(State{current_replica_group(), replica,
                                               ContextAccess::open(*innermost), current_device(),
                                               current_random_state()});
}

ReplicaContext::Inherit::Entered ReplicaContext::Inherit::enter(SourceLocation at) const {
  if (!state_) return Entered(nullptr);
  if (!state_->open->load(std::memory_order_acquire))
    throw FailedPrecondition(
        "[ReplicaContext::Inherit] the step is over; join the thread before the step function "
        "returns",
        at);
  return Entered(std::make_unique<Entered::Scopes>(*state_));
}

ReplicaContext::Inherit::Entered::Entered(std::unique_ptr<Scopes> scopes) noexcept
    : scopes_(std::move(scopes)) {}
ReplicaContext::Inherit::Entered::~Entered() = default;

}  // namespace lockstep
