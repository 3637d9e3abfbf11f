// SPDX-License-Identifier: Apache-2.0
#include "comm/host_collectives.h"

#include <lockstep/device/buffer.h>

#include "device/accelerator.h"

namespace lockstep {
namespace {

// How many elements the rank gives and gets.
struct Counts {
  std::int64_t in, out;
};

Counts counts_of(const CollectiveCall& call, std::span<const std::int64_t> counts, int rank,
                 int size) {
  switch (call.kind) {
    case CollectiveKind::reduce_scatter:
      return {call.count, call.count / size};
    case CollectiveKind::all_gather:
      return call.uneven ? Counts{counts[static_cast<std::size_t>(rank)], call.count}
                         : Counts{call.count, call.count * size};
    default:
      return {call.count, call.count};
  }
}

Buffer on_host(const CollectiveCall& call, std::int64_t count) {
  return Buffer::allocate(Device{}, static_cast<std::size_t>(count) * size_of(call.dtype));
}

Pending begin(Communicator& host, const CollectiveCall& call, const CollectiveKey& key,
              const ConstElements& in, const Elements& out, std::span<const std::int64_t> counts) {
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return host.all_reduce(key, call.op, in, out);
    case CollectiveKind::reduce_scatter:
      return host.reduce_scatter(key, call.op, in, out);
    case CollectiveKind::all_gather:
      return host.all_gather(key, in, out, call.uneven ? counts : std::span<const std::int64_t>());
    case CollectiveKind::broadcast:
      return host.broadcast(key, call.root, out);
    case CollectiveKind::barrier:
      break;
  }
  return host.barrier(key);
}

}  // namespace

void HostCollectives::put(int rank, const CollectiveCall& call, const void* in, void* out,
                          std::span<const std::int64_t> counts, const Stream& stream) {
  Communicator& host = *hosts_.at(static_cast<std::size_t>(rank));
  Accelerator& device = accelerator_of(stream.device);
  const Counts count = counts_of(call, counts, rank, host.size());
  const Buffer given = on_host(call, count.in);
  const bool in_place = call.kind == CollectiveKind::broadcast;
  const Buffer got = in_place ? given : on_host(call, count.out);
  if (given.bytes()) device.copy_to_host(stream, given.data(), in, given.bytes());
  const std::string name = call.name.to_string();
  begin(host, call, {call.channel, call.sequence, name, call.at},
        {given.data(), count.in, call.dtype}, {got.data(), count.out, call.dtype}, counts)
      .wait();
  if (got.bytes()) device.copy_from_host(stream, out, got.data(), got.bytes());
}

}  // namespace lockstep
