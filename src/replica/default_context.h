// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/replica_context.h>

namespace lockstep {

// The calling thread's context where no strategy is: replica 0 of 1, collectives are identities.
ReplicaContext& default_replica_context() noexcept;

// A reduction over one replica: hands back what it was given.
std::unique_ptr<GradientReduction> reduction_of_one(std::size_t num_variables, Tensor skip);

}  // namespace lockstep
