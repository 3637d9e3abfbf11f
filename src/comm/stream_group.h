// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>
#include <lockstep/comm/cross_device_ops.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/call.h"

namespace lockstep {

// What puts the collectives of one process's accelerators into their streams: NCCL, or in tests the
// fake device. A rank's calls come from one thread at a time, in the order in which its streams are
// to run them, which is the same on all ranks.
class StreamCollectives {
 public:
  virtual ~StreamCollectives() = default;
  // Puts the rank's part of a call and returns. `counts` as in Communicator::all_gather.
  virtual void put(int rank, const CollectiveCall& call, const void* in, void* out,
                   std::span<const std::int64_t> counts, const Stream& stream) = 0;
  // Collectives that some rank has not put do nothing, and the streams go on. From any thread.
  virtual void abort() noexcept = 0;
  // A new epoch, while no rank is inside. After abort() the group works again.
  virtual void begin_epoch() = 0;
  // "fake", "nccl 2.28.9": for logs.
  virtual std::string describe() const = 0;
};

// The implementation for these devices, one per rank, all of one kind of accelerator: NCCL, and
// HostCollectives of `hosts`, a communicator of each rank, where that is asked for or, unless NCCL is
// asked for, this build has none. Throws Unavailable where there is none.
std::unique_ptr<StreamCollectives> make_stream_collectives(CrossDeviceOps ops,
                                                           std::span<const Device> devices,
                                                           const std::vector<Communicator*>& hosts);

// Communicators for ranks that are accelerators of one process, a thread each. A call takes its place
// in the given stream and returns; work that the stream gets later finds the outputs there, so
// nobody needs to wait for them. What the ranks say of the call meets on the host: wait() returns
// when every rank has put it, throws a PeerError with both calls where their n-th calls differ, and
// otherwise fails as the hosts' collectives do. So a stream never waits for a rank that was not going
// to come without somebody being told.
class StreamGroup {
 public:
  // `hosts`, a communicator of each rank, outlive the group, which shares their epochs: begin_epoch(),
  // returned() and deadlines are theirs.
  StreamGroup(const std::vector<Communicator*>& hosts,
              std::unique_ptr<StreamCollectives> collectives);
  ~StreamGroup();
  Communicator& rank(int rank);
  void begin_epoch();
  std::string describe() const { return collectives_->describe(); }

 private:
  class Rank;
  std::unique_ptr<StreamCollectives> collectives_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace lockstep
