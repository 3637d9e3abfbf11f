// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/stream_group.h"

namespace lockstep {

// NCCL between the GPUs of one process, a communicator each. Sums are equal on all ranks; their order
// is NCCL's, which may depend on topology and size.
//
// Communicators are non-blocking, so that they can be aborted at any time. A thread looks every 100
// ms whether one of them has failed; it then aborts all, and later calls throw a PeerError with
// NCCL's words. A collective that merely never ends is found by whoever waits for the stream, by
// deadline.
class NcclCollectives final : public StreamCollectives {
 public:
  // One GPU per rank, all different. Throws Unavailable when libnccl is missing, InternalError with
  // NCCL's words when it fails, DeadlineExceeded when the GPUs do not find each other in a minute.
  explicit NcclCollectives(std::vector<Device> devices);
  ~NcclCollectives() override;

  void put(int rank, const CollectiveCall& call, const void* in, void* out,
           std::span<const std::int64_t> counts, const Stream& stream) override;
  void abort() noexcept override;
  void begin_epoch() override;
  std::string describe() const override;

 private:
  struct Rank {
    std::mutex mutex;  // NCCL takes one call per communicator at a time
    ncclComm_t communicator = nullptr;
  };

  void connect();
  void disconnect() noexcept;
  void watch();
  // Waits until a non-blocking call has been taken in; with the rank's mutex held.
  void settle(Rank& rank, ncclResult_t result, const char* what);
  [[noreturn]] void fail(ncclResult_t result, const char* what) const;
  ncclResult_t call_nccl(Rank& rank, const CollectiveCall& call, const void* in, void* out,
                         std::span<const std::int64_t> counts, cudaStream_t stream, int number);

  const std::vector<Device> devices_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<bool> aborted_{false};

  std::mutex failure_mutex_;
  std::string failure_;  // of this epoch, as the watchdog saw it

  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread watchdog_;  // last: it uses what is above
};

}  // namespace lockstep
