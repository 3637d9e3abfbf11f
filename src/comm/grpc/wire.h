// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Received bytes, in the pieces in which they came. Copies share them.
class Message {
 public:
  Message() = default;
  Message(std::vector<std::span<const std::byte>> pieces, std::shared_ptr<const void> owner)
      : pieces_(std::move(pieces)), owner_(std::move(owner)) {
    for (const auto piece : pieces_) bytes_ += piece.size();
  }
  std::size_t bytes() const { return bytes_; }
  // The bytes that come next, as many as lie together; none only if the message is empty.
  std::span<const std::byte> front() const {
    return bytes_ == 0 ? std::span<const std::byte>() : pieces_[first_];
  }
  // Takes the next `count` bytes, at most bytes(), out of the message; `to` may be null.
  void read(void* to, std::size_t count);

 private:
  std::vector<std::span<const std::byte>> pieces_;
  std::shared_ptr<const void> owner_;
  std::size_t first_ = 0;  // piece that is read next
  std::size_t bytes_ = 0;
};

// Bytes to be sent: `head`, then `body`, which is not copied. `borrowed` counts the messages whose
// body may still be read: the sender has counted this one, the wire counts it down.
struct Outgoing {
  std::vector<std::byte> head;
  std::span<const std::byte> body = {};
  std::atomic<int>* borrowed = nullptr;
  bool bulk = false;  // may wait behind messages that are not
};

using StreamId = std::uint64_t;

// What happens on the wire, in its one thread, one event after the other.
class WireEvents {
 public:
  virtual void received(StreamId stream, Message message) = 0;
  virtual void ended(StreamId stream, const std::string& why) = 0;  // last of its stream
  virtual void tick() = 0;                                          // about every `tick_every`

 protected:
  ~WireEvents() = default;
};

struct WireOptions {
  std::string listen_address;
  std::chrono::milliseconds tick_every{250};
  bool tls = false;
  std::string ca, certificate, key;  // PEM
  std::string tls_files;             // their names, for errors
};

// Streams of messages between processes, whatever their meaning. Thread-safe.
class Wire {
 public:
  virtual ~Wire() = default;  // ends all streams at once; no event comes after it
  // A stream to the server at `address`; one that cannot be opened ends with the reason.
  virtual StreamId open(const std::string& address) = 0;
  // Sends a message on a stream that was opened, or has received one; dropped if it has ended.
  // Messages of one kind (bulk or not) arrive in the order of the calls.
  virtual void send(StreamId stream, Outgoing message) = 0;
  // Nothing more will be sent; the stream ends when the other side has taken note.
  virtual void close(StreamId stream) = 0;
  // Ends the stream at once.
  virtual void cancel(StreamId stream) = 0;
  // Drops what waits to be sent and is counted by `borrowed`.
  virtual void forget(const std::atomic<int>& borrowed) = 0;
};

// Listens at once. Throws Unavailable when the address cannot be had, or without gRPC.
std::unique_ptr<Wire> make_wire(WireOptions options, WireEvents& events);

}  // namespace lockstep
