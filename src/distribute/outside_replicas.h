// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/strategy.h>

namespace lockstep {

// The verbs of a strategy belong to its cross-replica side, and to no other strategy's: throws
// FailedPrecondition elsewhere.
void require_outside_replicas(const StrategyInterface& strategy, const char* op, SourceLocation at);

}  // namespace lockstep
