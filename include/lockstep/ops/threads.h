// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

namespace lockstep {

// How many threads one op of the calling thread may use, itself included: 1 unless set. Only matrix
// products, convolutions and what is built from them use more than one. Sums may be added in
// another order with another number, so runs whose bits are compared need the same one.
LOCKSTEP_EXPORT int intra_op_threads() noexcept;

// Sets it for the calling thread; other threads keep theirs. OpenMP's own setting is left as it is.
// Throws InvalidArgument for less than 1.
LOCKSTEP_EXPORT void set_intra_op_threads(int threads,
                                          SourceLocation at = SourceLocation::current());

}  // namespace lockstep
