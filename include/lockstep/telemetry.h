// SPDX-License-Identifier: Apache-2.0
#pragma once

// telemetry: what a run tells about itself: counters for the process and time by phase for each step.
// Any layer may count; nothing here knows who does.

#include <lockstep/telemetry/step_timer.h>
#include <lockstep/telemetry/telemetry.h>
