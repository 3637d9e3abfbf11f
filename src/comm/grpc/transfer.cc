// SPDX-License-Identifier: Apache-2.0
#include "comm/grpc/transfer.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/tree_sum.h"

namespace lockstep {
namespace {

// Inputs travel with `enter` up to a size at which a rank receives so much from all others.
constexpr std::size_t kSmallFromAll = std::size_t{256} << 10;
// Bytes of a data frame: small enough for steps to overlap, large enough for the wire.
constexpr std::int64_t kMinChunk = std::int64_t{128} << 10;
constexpr std::int64_t kMaxChunk = std::int64_t{1} << 20;
// Bytes of each input that are summed at once, and divided while they are in the cache.
constexpr std::int64_t kRun = std::int64_t{16} << 10;

std::byte* advance(std::byte* data, std::size_t bytes) { return data ? data + bytes : data; }
const std::byte* advance(const std::byte* data, std::size_t bytes) {
  return data ? data + bytes : data;
}

void check(bool ok, const CollectiveCall& call, const char* what) {
  if (!ok)
    throw PeerError(message("GrpcGroup", "what another worker sent for ", call.to_string(),
                            " does not fit: ", what));
}

}  // namespace

Transfer::Transfer(int rank, int size) : rank_(rank), size_(size) {}

void Transfer::open(const CollectiveCall& call, std::span<const std::int64_t> counts,
                    const void* in, void* out) {
  call_ = call;
  counts_.clear();
  if (call.uneven) counts_.assign(counts.begin(), counts.end());
  in_ = static_cast<const std::byte*>(in);
  out_ = static_cast<std::byte*>(out);
  small_ = size_ == 1 || is_small(call.count);
  missing_ = 0;
  inboxes_.clear();
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t largest = (call.count + size_ - 1) / size_;
  chunk_ = std::clamp(largest * element / 4, kMinChunk, kMaxChunk) / element;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
      if (!small_) open_inboxes();
      return;
    case CollectiveKind::all_gather:
      chunk_ = kMaxChunk / element;
      for (int rank = 0; rank < size_; ++rank)
        if (rank != rank_ && !is_small(gathered_count(rank))) missing_ += gathered_count(rank);
      return;
    case CollectiveKind::broadcast:
      chunk_ = kMaxChunk / element;
      if (!small_ && rank_ != call.root) missing_ = call.count;
      return;
    case CollectiveKind::barrier:
      return;
  }
}

void Transfer::open_inboxes() {
  const std::int64_t block = block_count(rank_);
  inboxes_.resize(static_cast<std::size_t>((block + chunk_ - 1) / chunk_));
  for (Inbox& inbox : inboxes_) inbox.inputs.resize(static_cast<std::size_t>(size_));
  missing_ = call_.kind == CollectiveKind::all_reduce ? call_.count : block;
}

bool Transfer::is_small(std::int64_t elements) const {
  return bytes(elements) * static_cast<std::size_t>(size_) <= kSmallFromAll;
}

bool Transfer::reduces() const {
  return call_.kind == CollectiveKind::all_reduce || call_.kind == CollectiveKind::reduce_scatter;
}

std::size_t Transfer::bytes(std::int64_t elements) const {
  return static_cast<std::size_t>(elements) * size_of(call_.dtype);
}

// Where a rank's block of an all_reduce or reduce_scatter begins, or its part of an all_gather.
std::int64_t Transfer::block_begin(int rank) const {
  if (call_.kind == CollectiveKind::all_gather)
    return call_.uneven ? std::accumulate(counts_.begin(), counts_.begin() + rank, std::int64_t{0})
                        : rank * call_.count;
  return call_.count / size_ * rank + std::min<std::int64_t>(rank, call_.count % size_);
}

std::int64_t Transfer::block_count(int rank) const {
  return block_begin(rank + 1) - block_begin(rank);
}

std::int64_t Transfer::gathered_count(int rank) const {
  return call_.uneven ? counts_[static_cast<std::size_t>(rank)] : call_.count;
}

std::span<const std::byte> Transfer::payload_for(int rank) const {
  switch (call_.kind) {
    case CollectiveKind::all_reduce:
      return small_ ? std::span(in_, bytes(call_.count)) : std::span<const std::byte>();
    case CollectiveKind::reduce_scatter:
      if (!small_) return {};
      return {advance(in_, bytes(block_begin(rank))), bytes(block_count(rank))};
    case CollectiveKind::all_gather:
      if (!is_small(gathered_count(rank_))) return {};
      return {in_, bytes(gathered_count(rank_))};
    case CollectiveKind::broadcast:
      if (!small_ || rank_ != call_.root) return {};
      return {in_, bytes(call_.count)};
    case CollectiveKind::barrier:
      break;
  }
  return {};
}

void Transfer::start(std::span<const std::vector<std::byte>> payloads, DataSender& sender) {
  switch (call_.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
      if (small_) return sum_payloads(payloads);
      for (int i = 1; i < size_; ++i) {
        const int to = (rank_ + i) % size_;
        send(to, Phase::input, 0, in_ + bytes(block_begin(to)), block_count(to), sender);
      }
      return;
    case CollectiveKind::all_gather:
      gather_payloads(payloads);
      if (!is_small(gathered_count(rank_)))
        send_to_others(block_begin(rank_), in_, gathered_count(rank_), sender);
      return;
    case CollectiveKind::broadcast:
      if (rank_ == call_.root) {
        if (!small_) send_to_others(0, in_, call_.count, sender);
      } else if (small_ && call_.count > 0) {
        const auto& payload = payloads[static_cast<std::size_t>(call_.root)];
        check(payload.size() == bytes(call_.count), call_, "the data of the root");
        std::memcpy(out_, payload.data(), payload.size());
      }
      return;
    case CollectiveKind::barrier:
      return;
  }
}

void Transfer::sum_payloads(std::span<const std::vector<std::byte>> payloads) {
  const bool scattered = call_.kind == CollectiveKind::reduce_scatter;
  const std::int64_t begin = scattered ? block_begin(rank_) : 0;
  const std::int64_t count = scattered ? block_count(rank_) : call_.count;
  if (count == 0) return;
  std::vector<const void*> inputs;
  for (int rank = 0; rank < size_; ++rank) {
    const auto& payload = payloads[static_cast<std::size_t>(rank)];
    check(rank == rank_ || payload.size() == bytes(count), call_, "a small input");
    inputs.push_back(rank == rank_ ? in_ + bytes(begin) : payload.data());
  }
  tree_sum(call_.dtype, inputs, 0, out_, count);
  if (call_.op == ReduceOp::mean) divide(call_.dtype, out_, count, size_);
}

void Transfer::gather_payloads(std::span<const std::vector<std::byte>> payloads) {
  for (int rank = 0; rank < size_; ++rank) {
    const std::size_t count = bytes(gathered_count(rank));
    std::byte* const to = advance(out_, bytes(block_begin(rank)));
    if (rank == rank_) {
      if (to != in_ && count > 0) std::memcpy(to, in_, count);
      continue;
    }
    if (!is_small(gathered_count(rank)) || count == 0) continue;
    const auto& payload = payloads[static_cast<std::size_t>(rank)];
    check(payload.size() == count, call_, "a small part");
    std::memcpy(to, payload.data(), count);
  }
}

void Transfer::send(int rank, Phase phase, std::int64_t offset, const std::byte* from,
                    std::int64_t count, DataSender& sender) const {
  for (std::int64_t begin = 0; begin < count; begin += chunk_)
    sender.send_data(rank, phase, offset + begin,
                     {from + bytes(begin), bytes(std::min(chunk_, count - begin))});
}

void Transfer::send_to_others(std::int64_t offset, const std::byte* from, std::int64_t count,
                              DataSender& sender) const {
  for (int i = 1; i < size_; ++i)
    send((rank_ + i) % size_, Phase::result, offset, from, count, sender);
}

void Transfer::receive(int rank, Phase phase, std::int64_t offset, Message& elements,
                       DataSender& sender) {
  check(elements.bytes() % size_of(call_.dtype) == 0, call_, "a part of an element");
  if (phase == Phase::input)
    receive_input(rank, offset, elements, sender);
  else
    receive_result(offset, elements);
}

void Transfer::receive_result(std::int64_t offset, Message& elements) {
  const auto count = static_cast<std::int64_t>(elements.bytes() / size_of(call_.dtype));
  std::int64_t total = call_.count;
  if (call_.kind == CollectiveKind::all_gather) total = block_begin(size_);
  check(offset >= 0 && offset <= total - count && count <= missing_, call_, "a range of results");
  elements.read(out_ + bytes(offset), elements.bytes());
  missing_ -= count;
}

void Transfer::receive_input(int rank, std::int64_t offset, Message& elements, DataSender& sender) {
  const std::int64_t block = block_count(rank_);
  check(reduces() && !small_ && offset >= 0 && offset < block && offset % chunk_ == 0, call_,
        "a range of inputs");
  const std::int64_t count = std::min(chunk_, block - offset);
  check(elements.bytes() == bytes(count), call_, "the size of an input");
  Inbox& inbox = inboxes_[static_cast<std::size_t>(offset / chunk_)];
  inbox.inputs[static_cast<std::size_t>(rank)] = std::move(elements);
  if (++inbox.received < size_ - 1) return;

  const bool whole = call_.kind == CollectiveKind::all_reduce;
  const std::int64_t place = offset + (whole ? block_begin(rank_) : 0);
  std::byte* const to = out_ + bytes(place);
  sum_chunk(inbox, offset, count, to);
  missing_ -= count;
  if (whole) send_to_others(place, to, count, sender);
}

// Sums straight from the pieces in which the inputs came, as far as all lie together; an element
// that is torn apart is put together first.
void Transfer::sum_chunk(Inbox& inbox, std::int64_t offset, std::int64_t count, std::byte* to) {
  const std::size_t element = size_of(call_.dtype);
  const std::byte* const own = in_ + bytes(block_begin(rank_) + offset);
  torn_.resize(static_cast<std::size_t>(size_));
  std::vector<const void*> inputs(torn_.size());
  std::vector<std::size_t> taken(torn_.size());  // bytes already taken out for this round
  for (std::int64_t begin = 0, now = 0; begin < count; begin += now) {
    now = std::min(kRun / static_cast<std::int64_t>(element), count - begin);
    for (const Message& input : inbox.inputs)
      if (input.bytes() > 0)
        now = std::clamp<std::int64_t>(static_cast<std::int64_t>(input.front().size() / element), 1,
                                       now);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      Message& input = inbox.inputs[rank];
      const bool torn = input.bytes() > 0 && input.front().size() < element;
      taken[rank] = torn ? element : 0;
      if (torn) input.read(torn_[rank].data(), element);
      inputs[rank] = torn ? torn_[rank].data() : input.front().data();
    }
    inputs[static_cast<std::size_t>(rank_)] = own + bytes(begin);
    std::byte* const sum = to + bytes(begin);
    tree_sum(call_.dtype, inputs, 0, sum, now);
    if (call_.op == ReduceOp::mean) divide(call_.dtype, sum, now, size_);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank)
      if (static_cast<int>(rank) != rank_)
        inbox.inputs[rank].read(nullptr, bytes(now) - taken[rank]);
  }
  inbox.inputs.clear();
}

}  // namespace lockstep
