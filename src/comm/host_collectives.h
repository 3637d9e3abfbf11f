// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/stream_group.h"

namespace lockstep {

// Collectives of accelerators by way of the host, for whom there is no NCCL: a rank's values are copied
// there, the hosts' communicators do the work, and the result is copied back. Sums have the bits that
// CPUs give them. A call returns when the result is on its way back: ranks wait for each other in it.
class HostCollectives final : public StreamCollectives {
 public:
  // A communicator of each rank's host. They outlive this, and their epochs are its own.
  explicit HostCollectives(std::vector<Communicator*> hosts) : hosts_(std::move(hosts)) {}

  void put(int rank, const CollectiveCall& call, const void* in, void* out,
           std::span<const std::int64_t> counts, const Stream& stream) override;
  void abort() noexcept override {}
  void begin_epoch() override {}
  std::string describe() const override { return "by way of the host"; }

 private:
  const std::vector<Communicator*> hosts_;
};

}  // namespace lockstep
