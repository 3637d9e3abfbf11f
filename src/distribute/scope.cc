// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/distribute/strategy.h>

#include <atomic>
#include <thread>
#include <utility>

#include "replica/default_context.h"

namespace lockstep {

// What an open scope puts its thread into. It stays on the thread's stack of scopes until it is
// closed and all that was opened after it is gone, so that scopes may be closed in any order.
struct Strategy::Scope::Opened {
  explicit Opened(const std::shared_ptr<StrategyInterface>& implementation)
      : context(implementation),
        random(implementation->scope_random_state()),
        below(std::exchange(top, this)) {}

  // Ends what is closed on top of the calling thread's stack.
  static void end_closed() noexcept {
    while (top && top->closed.load(std::memory_order_acquire) && top->context.is_innermost()) {
      const std::unique_ptr<Opened> over(top);
      top = over->below;
    }
  }

  ContextScope context;
  RandomScope random;
  Opened* const below;
  const std::thread::id thread = std::this_thread::get_id();
  std::atomic<bool> closed{false};

  static thread_local Opened* top;
};

thread_local Strategy::Scope::Opened* Strategy::Scope::Opened::top = nullptr;

Strategy::Scope::Scope(const std::shared_ptr<StrategyInterface>& implementation) {
  Opened::end_closed();
  opened_ = new Opened(implementation);
}

Strategy::Scope::~Scope() {
  const bool foreign = opened_->thread != std::this_thread::get_id();
  const bool in_step = !foreign && !in_cross_replica_context();
  opened_->closed.store(true, std::memory_order_release);
  if (foreign || in_step)
    logging::error(
        "[Strategy::Scope] closed in a step function or by another thread than its own, which stays "
        "in the scope until it opens or closes another one");
  if (!foreign) Opened::end_closed();
}

std::optional<Strategy> get_strategy() {
  auto implementation = std::dynamic_pointer_cast<StrategyInterface>(current_replica_group());
  return implementation ? std::optional(Strategy(std::move(implementation))) : std::nullopt;
}

void set_strategy(const std::optional<Strategy>& strategy, SourceLocation at) {
  if (inside_scope())
    throw FailedPrecondition(
        "[set_strategy] called in a scope or a step function; call it where no scope is open", at);
  set_process_group(strategy ? strategy->implementation() : nullptr);
}

}  // namespace lockstep
