// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "comm/stream_group.h"
#include "device/fake/devices.h"

namespace lockstep {

// NCCL's rules on fake devices: a collective is an operation of every rank's stream, ranks meet by
// the order of their calls, nothing is checked before, and the order of summation is nobody's
// business: it changes from call to call.
class FakeCollectives final : public StreamCollectives {
 public:
  explicit FakeCollectives(int size) : group_(std::make_shared<fake::Group>(size)) {}
  void put(int rank, const CollectiveCall& call, const void* in, void* out,
           std::span<const std::int64_t> counts, const Stream& stream) override;
  void abort() noexcept override {
    aborted_ = true;
    fake::runtime().abort(*group_);
  }
  // Once more, for who put something between the host's abort and this one.
  void begin_epoch() override {
    if (aborted_.exchange(false)) fake::runtime().abort(*group_);
  }
  std::string describe() const override { return "fake"; }

 private:
  const std::shared_ptr<fake::Group> group_;
  std::atomic<bool> aborted_{false};
};

}  // namespace lockstep
