// SPDX-License-Identifier: Apache-2.0
#pragma once

// Includes gRPC: for grpc_wire.cc alone.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/grpc/wire.h"

namespace lockstep {

struct GrpcStream;

enum class GrpcEvent : std::uint8_t { opened, read, written, closed, finished, accepted, tick };

// What the completion queue gives back.
struct GrpcTag {
  GrpcStream* stream = nullptr;
  GrpcEvent event = GrpcEvent::tick;
};

// Invariants: `mutex` guards all but the gRPC objects. `writing` belongs to whoever set it: only
// they start a write. `operations` counts tags that the queue still owes; the stream is freed when
// it has finished and none is left.
struct GrpcStream {
  explicit GrpcStream(StreamId id) : id(id) {}
  bool is_client() const { return client != nullptr; }

  const StreamId id;
  std::mutex mutex;
  std::deque<Outgoing> urgent, bulk;
  int operations = 0;
  bool open = false;     // may write
  bool writing = false;  // a write is under way
  bool closing = false;  // close() was called
  bool closed = false;   // no more writes
  bool ending = false;   // Finish was called
  bool finished = false;

  grpc::ByteBuffer incoming;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::ClientContext> client_context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> client;
  std::unique_ptr<grpc::GenericServerContext> server_context;
  std::unique_ptr<grpc::GenericServerAsyncReaderWriter> server;
  grpc::Status status;

  GrpcTag opened{this, GrpcEvent::opened}, read{this, GrpcEvent::read},
      written{this, GrpcEvent::written}, closed_tag{this, GrpcEvent::closed},
      finished_tag{this, GrpcEvent::finished}, accepted{this, GrpcEvent::accepted};
};

inline void count_down(void* borrowed) {
  static_cast<std::atomic<int>*>(borrowed)->fetch_sub(1, std::memory_order_release);
}

inline grpc::ByteBuffer to_buffer(const Outgoing& message) {
  std::vector<grpc::Slice> slices;
  slices.emplace_back(message.head.data(), message.head.size());
  if (message.borrowed)
    slices.emplace_back(const_cast<std::byte*>(message.body.data()), message.body.size(),
                        count_down, message.borrowed);
  else if (!message.body.empty())
    slices.emplace_back(message.body.data(), message.body.size());
  return {slices.data(), slices.size()};
}

inline Message to_message(const grpc::ByteBuffer& buffer) {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) return {};
  std::vector<std::span<const std::byte>> pieces;
  for (const grpc::Slice& slice : *slices)
    if (slice.size() > 0)
      pieces.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  return {std::move(pieces), slices};
}

inline void drop(std::deque<Outgoing>& messages) {
  for (const Outgoing& message : messages)
    if (message.borrowed) count_down(message.borrowed);
  messages.clear();
}

}  // namespace lockstep
