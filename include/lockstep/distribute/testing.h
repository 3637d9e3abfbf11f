// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/variable.h>

#include <span>

namespace lockstep::testing {

// Throws InternalError unless every component of each on_write variable has the same bits on all
// local replicas; the text names the variable, the replica, the index and both values. Not while a
// run is active.
LOCKSTEP_EXPORT void require_equal_replicas(std::span<const Variable> variables,
                                            SourceLocation at = SourceLocation::current());

}  // namespace lockstep::testing
