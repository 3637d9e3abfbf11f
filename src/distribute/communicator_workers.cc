// SPDX-License-Identifier: Apache-2.0
#include "distribute/communicator_workers.h"

#include <lockstep/base/check.h>
#include <lockstep/device/device.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace lockstep {
namespace {

// What every worker sends first: the size of its bytes, and the bytes themselves if they fit, so that
// small ones take a single round.
struct Header {
  std::int64_t size = 0;
  std::array<std::byte, 56> inlined{};
};
static_assert(sizeof(Header) == 64);

bool fits(std::int64_t size) { return size <= static_cast<std::int64_t>(sizeof(Header::inlined)); }

Header header_of(const std::vector<std::byte>& bytes) {
  Header header{.size = static_cast<std::int64_t>(bytes.size())};
  if (fits(header.size)) std::copy(bytes.begin(), bytes.end(), header.inlined.begin());
  return header;
}

std::vector<std::byte> inlined_in(const Header& header) {
  return {header.inlined.begin(), header.inlined.begin() + header.size};
}

Elements as_elements(void* data, std::int64_t size) { return {data, size, DType::u8}; }

// Dtype and count are compared by the communicator; the shape by way of the name.
std::string with_shape(std::string_view name, const Tensor& value) {
  return std::string(name) + " " + std::string(name_of(value.dtype())) + value.shape().to_string();
}

}  // namespace

CommunicatorWorkers::CommunicatorWorkers(Communicator& communicator)
    : communicator_(communicator), process_(::getpid()) {}

bool CommunicatorWorkers::forked() const { return ::getpid() != process_; }

CollectiveKey CommunicatorWorkers::next_key(std::string_view name, SourceLocation at) {
  if (forked())
    throw FailedPrecondition(
        message("WorkerGroup", name,
                ": the strategy was made before fork() and its connections stayed with the parent; "
                "make a strategy in the child"),
        at);
  const std::lock_guard lock(mutex_);
  return {Channel::control, sequence_++, name, at};
}

void CommunicatorWorkers::barrier(std::string_view name, SourceLocation at) {
  communicator_.barrier(next_key(name, at)).wait();
}

std::vector<std::byte> CommunicatorWorkers::broadcast(std::string_view name,
                                                      std::vector<std::byte> bytes, int root,
                                                      SourceLocation at) {
  require(root >= 0 && root < size(), at, "WorkerGroup::broadcast", "expected a root below ",
          size(), ", got ", root);
  Header header = header_of(bytes);
  communicator_.broadcast(next_key(name, at), root, as_elements(&header, sizeof(Header))).wait();
  if (fits(header.size)) return inlined_in(header);
  bytes.resize(static_cast<std::size_t>(header.size));
  communicator_.broadcast(next_key(name, at), root, as_elements(bytes.data(), header.size)).wait();
  return bytes;
}

std::vector<std::vector<std::byte>> CommunicatorWorkers::all_gather(std::string_view name,
                                                                    std::vector<std::byte> bytes,
                                                                    SourceLocation at) {
  Header own = header_of(bytes);
  std::vector<Header> headers(static_cast<std::size_t>(size()));
  communicator_
      .all_gather(
          next_key(name, at), as_elements(&own, sizeof(Header)),
          as_elements(headers.data(), static_cast<std::int64_t>(headers.size() * sizeof(Header))))
      .wait();
  std::vector<std::vector<std::byte>> parts;
  if (std::all_of(headers.begin(), headers.end(), [](auto& h) { return fits(h.size); })) {
    for (const Header& header : headers) parts.push_back(inlined_in(header));
    return parts;
  }
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  for (const Header& header : headers) {
    counts.push_back(header.size);
    total += header.size;
  }
  std::vector<std::byte> all(static_cast<std::size_t>(total));
  communicator_
      .all_gather(next_key(name, at), as_elements(bytes.data(), own.size),
                  as_elements(all.data(), total), counts)
      .wait();
  for (auto begin = all.begin(); const std::int64_t count : counts) {
    parts.emplace_back(begin, begin + count);
    begin += count;
  }
  return parts;
}

Tensor CommunicatorWorkers::all_reduce_sum(std::string_view name, const Tensor& value,
                                           SourceLocation at) {
  Buffer sum = Buffer::allocate(value.device(), value.bytes());
  communicator_
      .all_reduce(next_key(with_shape(name, value), at), ReduceOp::sum,
                  ConstElements{value.raw_data(), value.num_elements(), value.dtype()},
                  Elements{sum.data(), value.num_elements(), value.dtype()})
      .wait();
  return Tensor(std::move(sum), value.dtype(), value.shape());
}

Tensor CommunicatorWorkers::broadcast(std::string_view name, const Tensor& value,
                                      SourceLocation at) {
  Buffer received = Buffer::allocate(value.device(), value.bytes());
  if (value.bytes()) std::memcpy(received.data(), value.raw_data(), value.bytes());
  communicator_
      .broadcast(next_key(with_shape(name, value), at), 0,
                 Elements{received.data(), value.num_elements(), value.dtype()})
      .wait();
  return Tensor(std::move(received), value.dtype(), value.shape());
}

}  // namespace lockstep
