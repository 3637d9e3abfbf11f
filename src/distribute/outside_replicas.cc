// SPDX-License-Identifier: Apache-2.0
#include "distribute/outside_replicas.h"

#include <lockstep/base/check.h>
#include <lockstep/replica/context.h>

namespace lockstep {

void require_outside_replicas(const StrategyInterface& strategy, const char* op,
                              SourceLocation at) {
  if (!has_strategy()) return;
  if (current_replica_group().get() != &strategy)
    throw FailedPrecondition(
        message(op, "the scope or a run of another strategy is active; do not mix strategies"), at);
  if (!in_cross_replica_context())
    throw FailedPrecondition(message(op,
                                     "called in a step function; it belongs outside run: use "
                                     "get_replica_context()->all_reduce or merge_call"),
                             at);
}

}  // namespace lockstep
