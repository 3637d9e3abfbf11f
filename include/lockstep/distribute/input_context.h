// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstdint>

namespace lockstep {

// For which replica distribute_values_from_function asks a value.
struct ValueContext {
  int replica_id_in_sync_group = 0;  // among the replicas of all workers
  int num_replicas_in_sync = 1;
};

// For whom distribute_datasets_from_function asks a dataset: an input pipeline, of which each process
// has one.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;  // the worker's rank
  int num_replicas_in_sync = 1;

  // The rows of each replica; InvalidArgument where they are not all as many.
  LOCKSTEP_EXPORT std::int64_t get_per_replica_batch_size(
      std::int64_t global_batch_size, SourceLocation at = SourceLocation::current()) const;
};

}  // namespace lockstep
