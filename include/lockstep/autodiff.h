// SPDX-License-Identifier: Apache-2.0
#pragma once

// autodiff: GradientTape listens to the ops of a thread and replays their gradient rules in reverse. It knows
// values by key only, not variables, layers or replicas. custom_gradient and recompute make one op of a function:
// one whose gradient is stated, and one whose intermediate values are computed again when they are needed.

#include <lockstep/autodiff/arguments.h>
#include <lockstep/autodiff/custom_gradient.h>
#include <lockstep/autodiff/recompute.h>
#include <lockstep/autodiff/tape.h>
