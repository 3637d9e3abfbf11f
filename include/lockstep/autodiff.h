// SPDX-License-Identifier: Apache-2.0
#pragma once

// autodiff: GradientTape listens to the ops of a thread and replays their gradient rules in reverse. It knows
// values by key only, not variables, layers or replicas.

#include <lockstep/autodiff/tape.h>
