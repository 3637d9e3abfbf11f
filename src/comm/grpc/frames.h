// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/call.h"
#include "comm/grpc/wire.h"

namespace lockstep {

// What workers say to each other: a header, then a text or numbers, or elements of a tensor.
enum class FrameKind : std::uint8_t {
  // A stream begins with one of the first, answered by one of the next two.
  hello,
  welcome,
  refusal,
  ready,  // this rank has found all others
  heartbeat,
  enter,     // a rank enters a collective
  data,      // elements of it
  withdraw,  // it will not take part after all
  returned,  // it makes no more calls in this epoch
  abort,     // the group has failed
  goodbye    // it makes no more calls at all
};

struct FrameHeader {
  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::heartbeat;
  std::uint8_t phase = 0;  // data: see transfer.h
  std::uint16_t unused = 0;
  std::uint64_t serial = 0;  // enter, data, withdraw: the sender's number of its call
  std::uint64_t offset = 0;  // data: first element
  std::uint64_t bytes = 0;   // of what follows

  static constexpr std::uint32_t kMagic = 0x31534B4C;  // "LKS1"
};
static_assert(std::endian::native == std::endian::little && sizeof(FrameHeader) == 32);

// Bytes under construction, and taken apart. Numbers as they lie in memory (little-endian).
class Packer {
 public:
  explicit Packer(FrameHeader header = {}) { put(header); }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    append(&value, sizeof value);
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  void append(const void* data, std::size_t bytes);
  // The frame, with the header's `bytes` filled in.
  std::vector<std::byte> take();

 private:
  std::vector<std::byte> bytes_;
};

// Throws PeerError when the message is shorter than what is read from it.
class Unpacker {
 public:
  explicit Unpacker(Message& message) : message_(message) {}
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  std::string get_text();
  void read(void* to, std::size_t bytes);
  std::size_t left() const { return message_.bytes(); }

 private:
  Message& message_;
};

// A call with the counts of an uneven all_gather, as `enter` carries it.
void pack_call(Packer& packer, const CollectiveCall& call, std::span<const std::int64_t> counts);
CollectiveCall unpack_call(Unpacker& unpacker, std::vector<std::int64_t>& counts);

// An exception as `abort` carries it. What is no lockstep::Error arrives as a PeerError about
// `peer`, of whom an Error's context speaks if it names nobody.
void pack_error(Packer& packer, const std::exception_ptr& error);
std::exception_ptr unpack_error(Unpacker& unpacker, const std::string& peer);

}  // namespace lockstep
