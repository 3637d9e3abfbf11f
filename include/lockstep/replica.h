// SPDX-License-Identifier: Apache-2.0
#pragma once

// replica: what a step function sees of the strategy that runs it: its ReplicaContext, mirrored Variables
// and PerReplica values. Strategies implement these from above; models use them without knowing whose they
// are.

#include <lockstep/replica/context.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/replica_group.h>
#include <lockstep/replica/replica_local.h>
#include <lockstep/replica/variable.h>
#include <lockstep/replica/worker_group.h>
