// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace lockstep {

// The processes that train together, seen from one of them. Collectives are called by every worker,
// in cross-replica context and in one order; they end within the strategy's deadline. Calls that
// meet must have one name, else both get a PeerError.
class LOCKSTEP_EXPORT WorkerGroup {
 public:
  virtual ~WorkerGroup();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The worker that writes checkpoints and summaries: rank 0.
  bool is_chief() const { return rank() == 0; }
  virtual void barrier(std::string_view name, SourceLocation at = SourceLocation::current()) = 0;
  // Rank `root`'s bytes, on every worker.
  virtual std::vector<std::byte> broadcast(std::string_view name, std::vector<std::byte> bytes,
                                           int root,
                                           SourceLocation at = SourceLocation::current()) = 0;
  // Everyone's bytes, in rank order.
  virtual std::vector<std::vector<std::byte>> all_gather(
      std::string_view name, std::vector<std::byte> bytes,
      SourceLocation at = SourceLocation::current()) = 0;
};

// A group of one: collectives return their input at once.
LOCKSTEP_EXPORT WorkerGroup& single_worker();

}  // namespace lockstep
