// SPDX-License-Identifier: Apache-2.0
// Links once they stand, and how they end. How they come about: bootstrap.cc.
#include "comm/grpc/links.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 2s;

std::vector<std::string> names_of(const GrpcOptions& options) {
  std::vector<std::string> names = options.names;
  for (std::size_t rank = names.size(); rank < options.addresses.size(); ++rank)
    names.push_back("worker " + std::to_string(rank));
  return names;
}

std::uint64_t new_incarnation() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

std::string read_file(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty())
    throw InvalidArgument(message("GrpcGroup", "cannot read the TLS ", what, " file \"", path,
                                  "\"; expected a PEM file"));
  return text;
}

WireOptions wire_options(const GrpcOptions& options) {
  WireOptions wire;
  const auto own = static_cast<std::size_t>(options.rank);
  wire.listen_address =
      options.listen_address.empty() ? options.addresses[own] : options.listen_address;
  wire.tick_every = std::clamp<std::chrono::milliseconds>(options.heartbeat_timeout / 5, 20ms, 1s);
  if (!options.tls) return wire;
  wire.tls = true;
  wire.ca = read_file(options.tls->ca, "ca");
  wire.certificate = read_file(options.tls->certificate, "certificate");
  wire.key = read_file(options.tls->key, "key");
  wire.tls_files = "ca \"" + options.tls->ca + "\", certificate \"" + options.tls->certificate +
                   "\", key \"" + options.tls->key + "\"";
  return wire;
}

}  // namespace

Links::Links(const GrpcOptions& options, LinkEvents& events)
    : options_(options),
      names_(names_of(options)),
      incarnation_(new_incarnation()),
      events_(events),
      peers_(options.addresses.size()) {
  const std::lock_guard lock(mutex_);  // events wait until wire_ is set
  wire_ = make_wire(wire_options(options), *this);
}

Links::~Links() { wire_.reset(); }

std::string Links::peer(int rank) const { return name(rank) + " (" + address(rank) + ')'; }

void Links::send(int rank, Outgoing frame) {
  StreamId stream = 0;
  {
    const std::lock_guard lock(mutex_);
    stream = at(rank).to;
    at(rank).sent = Clock::now();
  }
  wire_->send(stream, std::move(frame));
}

void Links::send_to_all(const std::vector<std::byte>& frame) {
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank) send(rank, {.head = frame});
}

Links::End Links::end_of(StreamId stream) const {
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.to == stream) return {rank, true};
    if (peer.from == stream) return {rank, false};
  }
  return {};
}

void Links::received(StreamId stream, Message message) {
  End end;
  {
    const std::lock_guard lock(mutex_);
    end = end_of(stream);
    if (end.rank >= 0) at(end.rank).heard = Clock::now();
  }
  try {
    Unpacker unpacker(message);
    const auto header = unpacker.get<FrameHeader>();
    if (header.magic != FrameHeader::kMagic || header.bytes != unpacker.left())
      throw PeerError("[GrpcGroup] what a worker sends is not lockstep's protocol");
    if (end.rank < 0)
      on_hello(stream, unpacker);
    else if (end.outgoing)
      on_answer(end.rank, header.kind, unpacker);
    else
      dispatch(end.rank, header, message);
  } catch (const Error& error) {
    wire_->cancel(stream);
    if (end.rank >= 0) lose(end.rank, error.message());
  }
}

void Links::dispatch(int rank, const FrameHeader& header, Message& message) {
  switch (header.kind) {
    case FrameKind::heartbeat:
      return;
    case FrameKind::ready: {
      std::vector<std::uint64_t> list(peers_.size());
      Unpacker(message).read(list.data(), list.size() * sizeof list[0]);
      const std::lock_guard lock(mutex_);
      at(rank).ready = std::move(list);
      changed_.notify_all();
      return;
    }
    case FrameKind::goodbye: {
      {
        const std::lock_guard lock(mutex_);
        at(rank).left = true;
        changed_.notify_all();
      }
      return events_.left(rank);
    }
    case FrameKind::abort: {
      Unpacker unpacker(message);
      const std::exception_ptr reason = unpack_error(unpacker, peer(rank));
      {
        const std::lock_guard lock(mutex_);
        fail_startup(reason);
      }
      return events_.failed(reason);
    }
    default:
      return events_.received(rank, header, message);
  }
}

void Links::ended(StreamId stream, const std::string& why) {
  int rank = -1;
  {
    const std::lock_guard lock(mutex_);
    const End end = end_of(stream);
    if (end.rank < 0) return;
    Peer& peer = at(end.rank);
    if (!why.empty()) peer.trouble = why;
    if (end.outgoing) {
      peer.to = 0;
      peer.welcomed = false;
      peer.to_ended = Clock::now();
    } else {
      peer.from = 0;
      if (!peer.left) peer.ready.clear();
      if (started_ && !peer.left) rank = end.rank;
    }
    if (!started_) list_changed();
    changed_.notify_all();
  }
  if (rank >= 0) lose(rank, "its connection was closed");
}

void Links::lose(int rank, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = at(rank);
    if (!started_ || leaving_ || peer.left || std::exchange(peer.lost, true)) return;
  }
  events_.lost(rank, why);
}

void Links::tick() {
  std::vector<int> silent, cut;
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    // After a pause of this process nobody is blamed for what could not be read meanwhile.
    const bool paused = now - last_tick_ > options_.heartbeat_timeout / 2;
    last_tick_ = now;
    for (int rank = 0; rank < size(); ++rank) {
      Peer& peer = at(rank);
      if (rank == options_.rank || peer.left || peer.lost) continue;
      if (peer.welcomed && now - peer.sent > options_.heartbeat_timeout / 5) {
        peer.sent = now;
        wire_->send(peer.to, {.head = Packer({.kind = FrameKind::heartbeat}).take()});
      }
      if (paused) peer.heard = now;
      if (!started_) continue;
      if (now - peer.heard > options_.heartbeat_timeout) silent.push_back(rank);
      if (peer.to == 0 && now - peer.to_ended > kGrace) cut.push_back(rank);
    }
  }
  for (const int rank : silent)
    lose(rank, message("GrpcGroup", "no sign of life for ", options_.heartbeat_timeout.count(),
                       " ms (heartbeat_timeout)")
                   .substr(sizeof "[GrpcGroup]"));
  for (const int rank : cut) lose(rank, "the connection to it was closed");
}

void Links::leave(Deadline deadline) {
  std::unique_lock lock(mutex_);
  leaving_ = true;
  for (Peer& peer : peers_) {
    if (peer.to == 0) continue;
    wire_->send(peer.to, {.head = Packer({.kind = FrameKind::goodbye}).take()});
    wire_->close(peer.to);
  }
  changed_.wait_until(lock, deadline.when(), [&] {
    return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.to == 0 || peer.lost; });
  });
}

void Links::sever() {
  std::vector<StreamId> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_) streams.insert(streams.end(), {peer.to, peer.from});
  }
  for (const StreamId stream : streams)
    if (stream != 0) wire_->cancel(stream);
}

}  // namespace lockstep
