// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/replica_group.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace lockstep {

// The calling thread's context where no strategy is: replica 0 of 1, collectives are identities.
ReplicaContext& default_replica_context() noexcept;

// The calling thread is a replica's, in its step function or in a merge_call's function.
bool inside_run() noexcept;

// Which of the local components an update in the calling thread concerns; nothing outside updates.
std::optional<std::size_t> updated_component() noexcept;

// The calling thread has a context of its own: a scope, a run or a merge_call.
bool inside_scope() noexcept;
// Threads that have none are in this group's cross-replica context from now on; null: in the default
// replica context. While no other thread asks.
void set_process_group(std::shared_ptr<ReplicaGroup> group);

// Throws FailedPrecondition "[op] ..." in a thread that inherited the context of a step that is
// over.
void require_step(const char* op, SourceLocation at);

// Takes the votes; false, on the host, where there is none.
Tensor taken(Tensor& votes);

// A reduction over one replica: hands back what it was given. finish takes the replica's `votes`.
std::unique_ptr<GradientReduction> reduction_of_one(std::span<const Variable> variables,
                                                    Tensor& votes, SourceLocation at);

}  // namespace lockstep
