// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep::nn {

// Moves `average` to average * decay + value * (1 - decay). In a replica `value` is the mean of all
// replicas' values, by a collective that every replica calls, so that components that were equal
// stay equal; TensorFlow's assign_moving_average without its correction of the start. No gradient
// flows. Throws InvalidArgument for a decay outside 0 to 1, and when value does not fit the
// variable.
LOCKSTEP_EXPORT void assign_moving_average(Variable average, const Tensor& value, double decay,
                                           SourceLocation at = SourceLocation::current());

}  // namespace lockstep::nn
