// SPDX-License-Identifier: Apache-2.0
#include "comm/stream_group.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>

#include <memory>
#include <optional>
#include <utility>

#include "comm/fake_collectives.h"
#include "comm/host_collectives.h"
#if LOCKSTEP_WITH_NCCL
#include "comm/nccl/nccl_collectives.h"
#endif

namespace lockstep {
namespace {

// A call whose ranks have to agree before any of them has put it, and to have put it before one of
// them may wait for a stream.
struct PutCall final : PendingCall {
  Pending agreed, put;

  bool done() override { return agreed.done() && put.done(); }
  void wait(std::optional<Deadline> deadline) override {
    for (Pending* const part : {&agreed, &put}) deadline ? part->wait(*deadline) : part->wait();
  }
  void release() noexcept override { delete this; }
};

}  // namespace

class StreamGroup::Rank final : public Communicator {
 public:
  Rank(Communicator& host, StreamCollectives& collectives)
      : host_(host), collectives_(collectives) {}

  Pending all_reduce(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                     const Stream& stream) override {
    return put(all_reduce_call(key, op, in, out), in.data, out.data, {}, stream);
  }
  Pending reduce_scatter(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                         const Stream& stream) override {
    return put(reduce_scatter_call(key, op, in, out, rank(), size()), in.data, out.data, {},
               stream);
  }
  Pending all_gather(const CollectiveKey& key, ConstElements in, Elements out,
                     std::span<const std::int64_t> counts, const Stream& stream) override {
    return put(all_gather_call(key, in, out, counts, rank(), size()), in.data, out.data, counts,
               stream);
  }
  Pending broadcast(const CollectiveKey& key, int root, Elements data,
                    const Stream& stream) override {
    return put(broadcast_call(key, root, data, size()), data.data, data.data, {}, stream);
  }
  Pending barrier(const CollectiveKey& key) override { return host_.barrier(key); }
  void abort(std::exception_ptr reason) noexcept override {
    host_.abort(std::move(reason));
    collectives_.abort();
  }
  int rank() const noexcept override { return host_.rank(); }
  int size() const noexcept override { return host_.size(); }
  std::string describe() const override {
    return collectives_.describe() + ": rank " + std::to_string(rank()) + " of " +
           std::to_string(size()) + ", in the devices' streams";
  }

  void begin_epoch() { issued_ = 0; }

 private:
  Pending put(const CollectiveCall& call, const void* in, void* out,
              std::span<const std::int64_t> counts, const Stream& stream) {
    require(!stream.device.is_host(), SourceLocation::current(), api_name(call.kind), call.key(),
            ": expected a stream of an accelerator, got one of ", stream.device);
    // The n-th calls of all ranks meet under one key and are compared by the barrier's name.
    const std::string text = print_call(call, counts);
    auto pending = std::make_unique<PutCall>();
    pending->agreed = host_.barrier({Channel::control, issued_++, text});
    collectives_.put(rank(), call, in, out, counts, stream);
    pending->put = host_.barrier({Channel::control, issued_++, "put"});
    return Pending(*pending.release());
  }

  Communicator& host_;
  StreamCollectives& collectives_;
  std::int64_t issued_ = 0;  // barriers of this epoch
};

StreamGroup::StreamGroup(const std::vector<Communicator*>& hosts,
                         std::unique_ptr<StreamCollectives> collectives)
    : collectives_(std::move(collectives)) {
  for (Communicator* const host : hosts)
    ranks_.push_back(std::make_unique<Rank>(*host, *collectives_));
}

StreamGroup::~StreamGroup() = default;

Communicator& StreamGroup::rank(int rank) { return *ranks_.at(static_cast<std::size_t>(rank)); }

void StreamGroup::begin_epoch() {
  collectives_->begin_epoch();
  for (const auto& rank : ranks_) rank->begin_epoch();
}

std::unique_ptr<StreamCollectives> make_stream_collectives(
    CrossDeviceOps ops, std::span<const Device> devices, const std::vector<Communicator*>& hosts) {
  if (ops == CrossDeviceOps::reduction_to_one_device)
    return std::make_unique<HostCollectives>(hosts);
  if (devices[0].kind == DeviceKind::fake)
    return std::make_unique<FakeCollectives>(static_cast<int>(devices.size()));
#if LOCKSTEP_WITH_NCCL
  if (devices[0].kind == DeviceKind::cuda)
    return std::make_unique<NcclCollectives>(std::vector(devices.begin(), devices.end()));
#endif
  constexpr const char* kMissing = "; for several GPUs, install NCCL's headers and build again";
  if (ops == CrossDeviceOps::nccl_all_reduce)
    throw Unavailable(message("CrossDeviceOps::nccl_all_reduce",
                              "this build has no collectives for ", devices[0], kMissing),
                      SourceLocation{});
  logging::warning(message("CrossDeviceOps", "this build has no collectives for ", devices[0],
                           ", whose values are added on the host", kMissing));
  return std::make_unique<HostCollectives>(hosts);
}

}  // namespace lockstep
