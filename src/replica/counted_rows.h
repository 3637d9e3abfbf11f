// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/replica_context.h>

#include <optional>

namespace lockstep {

// What the calling thread's replica says of the rows of `x` (ReplicaContext::counted_rows); empty
// for a scalar and outside replicas.
std::optional<ReplicaContext::CountedRows> counted_rows_of(const Tensor& x);

// x with zeros in rows that are padding, whatever is there.
Tensor without_padding(const Tensor& x, const ReplicaContext::CountedRows& rows);

}  // namespace lockstep
