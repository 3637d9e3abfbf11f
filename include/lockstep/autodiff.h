// SPDX-License-Identifier: Apache-2.0
#pragma once

// autodiff: GradientTape listens to the ops of a thread and replays their gradient rules in reverse. It knows
// values by key only, not variables, layers or replicas. custom_gradient makes one op of a
// function whose gradient is stated.

#include <lockstep/autodiff/arguments.h>
#include <lockstep/autodiff/custom_gradient.h>
#include <lockstep/autodiff/tape.h>
