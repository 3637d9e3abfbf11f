// SPDX-License-Identifier: Apache-2.0
#pragma once

// distribute: strategies build replicas, deal batches, run the step function on each replica and combine
// what it returns. The only layer that knows both replicas and communicators.

#include <lockstep/distribute/strategy.h>  // first, so that compilers name no other header in errors

#include <lockstep/distribute/distributed_dataset.h>
#include <lockstep/distribute/extension.h>
#include <lockstep/distribute/input_context.h>
#include <lockstep/distribute/multi_worker.h>
#include <lockstep/distribute/options.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/distribute/verify.h>
