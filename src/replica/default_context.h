// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/replica_context.h>

namespace lockstep {

// The calling thread's context where no strategy is: replica 0 of 1, collectives are identities.
ReplicaContext& default_replica_context() noexcept;

// The calling thread is a replica's, in its step function or in a merge_call's function.
bool inside_run() noexcept;

// Throws FailedPrecondition "[op] ..." in a thread that inherited the context of a step that is
// over.
void require_step(const char* op, SourceLocation at);

// Takes the votes; false, on the host, where there is none.
Tensor taken(Tensor& votes);

// A reduction over one replica: hands back what it was given. finish takes the replica's `votes`.
std::unique_ptr<GradientReduction> reduction_of_one(std::span<const Variable> variables,
                                                    Tensor& votes, SourceLocation at);

}  // namespace lockstep
