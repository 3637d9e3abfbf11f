// SPDX-License-Identifier: Apache-2.0
// How the workers of a run find each other.
#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/base/version.h>

#include <algorithm>

#include "comm/grpc/links.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr auto kReportEvery = 5s;

// How long to wait before the next attempt to reach a peer. One that has not started yet refuses the
// connection; what else fails will go on to fail until somebody mends it, and gRPC logs each attempt.
std::chrono::milliseconds retry_after(const std::string& trouble) {
  return trouble.empty() || trouble.find("refused") != std::string::npos ? 100ms : 1000ms;
}

std::string joined(const std::vector<std::string>& addresses) {
  std::string text;
  for (const std::string& address : addresses) text += (text.empty() ? "" : ", ") + address;
  return text;
}

}  // namespace

void Links::connect() {
  const auto start = Clock::now();
  const Deadline deadline = Deadline::after(options_.startup_timeout);
  auto report = start + kReportEvery;
  const auto waited = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    if (startup_failure_) std::rethrow_exception(startup_failure_);
    open_missing();
    send_ready();
    if (all_ready()) break;
    if (deadline.passed()) {
      ErrorContext context;
      for (int rank = 0; rank < size() && context.peer.empty(); ++rank)
        if (rank != options_.rank && !at(rank).linked()) context.peer = peer(rank);
      throw DeadlineExceeded(
          message("GrpcGroup", peer(options_.rank), " waited ", waited(), " ms for ", missing(),
                  "; start it, see that its address is right and can be reached, or raise "
                  "startup_timeout"),
          SourceLocation(), std::move(context));
    }
    if (Clock::now() >= report) {
      report += kReportEvery;
      logging::warning(message("GrpcGroup", peer(options_.rank), " has waited ", waited(),
                               " ms of ", options_.startup_timeout.count(), " for ", missing()));
    }
    changed_.wait_for(lock, 20ms);
  }
  started_ = true;
  last_tick_ = Clock::now();
  for (Peer& peer : peers_) peer.heard = Clock::now();
  logging::info(message("GrpcGroup", peer(options_.rank), " is connected with ", size() - 1,
                        " others after ", waited(), " ms", options_.tls ? ", by TLS" : ""));
}

void Links::open_missing() {
  const auto now = Clock::now();
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = at(rank);
    if (rank == options_.rank || peer.done() || peer.to != 0 ||
        now - peer.opened < retry_after(peer.trouble))
      continue;
    peer.opened = now;
    peer.to = wire_->open(address(rank));
    wire_->send(peer.to, {.head = hello()});
  }
}

std::vector<std::uint64_t> Links::incarnations() const {
  std::vector<std::uint64_t> list;
  list.reserve(peers_.size());
  for (const Peer& peer : peers_) list.push_back(peer.incarnation_to);
  list[static_cast<std::size_t>(options_.rank)] = incarnation_;
  return list;
}

bool Links::all_linked() const {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (static_cast<int>(rank) != options_.rank && !peers_[rank].linked()) return false;
  return true;
}

bool Links::all_ready() const {
  const std::vector<std::uint64_t> list = incarnations();
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (static_cast<int>(rank) == options_.rank) continue;
    if (!peer.linked() || !peer.ready_sent || peer.ready != list) return false;
  }
  return true;
}

void Links::send_ready() {
  if (!all_linked()) return;
  const std::vector<std::uint64_t> list = incarnations();
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = at(rank);
    if (rank == options_.rank || std::exchange(peer.ready_sent, true) || peer.done()) continue;
    Packer packer({.kind = FrameKind::ready});
    packer.append(list.data(), list.size() * sizeof list[0]);
    wire_->send(peer.to, {.head = packer.take()});
  }
}

void Links::list_changed() {
  for (Peer& peer : peers_) peer.ready_sent = false;
}

void Links::fail_startup(std::exception_ptr reason) {
  if (started_ || startup_failure_) return;
  startup_failure_ = std::move(reason);
  changed_.notify_all();
}

// What a connection that breaks at once often means.
std::string Links::hint(const std::string& trouble) const {
  const bool refused = trouble.find("andshake") != std::string::npos ||
                       trouble.find("ocket closed") != std::string::npos;
  if (!refused) return "";
  return options_.tls ? " (this worker uses TLS: does that one, and has one ca signed the "
                        "certificates of both?)"
                      : " (this worker does not use TLS: does that one?)";
}

// "worker 1 (127.0.0.1:20001): connection refused; worker 2 (...)".
std::string Links::missing() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& one = peers_[static_cast<std::size_t>(rank)];
    if (rank == options_.rank || one.linked()) continue;
    text += (text.empty() ? "" : "; ") + peer(rank);
    if (one.welcomed)
      text += ": it can be reached, but has not come back";
    else if (!one.trouble.empty())
      text += ": " + one.trouble + hint(one.trouble);
  }
  return text.empty() ? "the others to find each other" : text;
}

std::vector<std::byte> Links::hello() const {
  Packer packer({.kind = FrameKind::hello});
  packer.put_text(version());
  packer.put(options_.rank);
  packer.put_text(joined(options_.addresses));
  packer.put(incarnation_);
  packer.put_text(options_.agreement);
  packer.put_text(options_.traits);
  return packer.take();
}

// Why a worker that says this cannot be of this run; empty if it can.
std::string Links::objection(int rank, const std::string& their_version,
                             const std::string& addresses, const std::string& agreement) const {
  const std::string own = peer(options_.rank);
  const std::string other = "rank " + std::to_string(rank);
  if (their_version != version())
    return message("GrpcGroup", "workers run different versions of lockstep: ", own, " has ",
                   version(), ", ", other, " has ", their_version);
  if (addresses != joined(options_.addresses))
    return message("GrpcGroup", "workers disagree about the cluster: ", own, " has [",
                   joined(options_.addresses), "], ", other, " has [", addresses, "]");
  if (rank < 0 || rank >= size() || rank == options_.rank)
    return message("GrpcGroup", "another process takes itself for ",
                   rank == options_.rank ? own : other, " of ", size(),
                   "; each worker needs a rank of its own");
  if (agreement != options_.agreement)
    return message("GrpcGroup", "workers have different options: ", own, " has \"",
                   options_.agreement, "\", ", peer(rank), " has \"", agreement,
                   "\"; start all with the same options of the strategy");
  return "";
}

void Links::refuse(StreamId stream, bool for_good, const std::string& text) {
  Packer packer({.kind = FrameKind::refusal});
  packer.put(for_good);
  packer.put_text(text);
  wire_->send(stream, {.head = packer.take()});
  wire_->close(stream);
}

void Links::on_hello(StreamId stream, Unpacker& hello) {
  const std::string their_version = hello.get_text();
  const int rank = hello.get<int>();
  const std::string addresses = hello.get_text();
  const auto incarnation = hello.get<std::uint64_t>();
  const std::string agreement = hello.get_text();
  const std::string traits = hello.get_text();

  const std::lock_guard lock(mutex_);
  if (const std::string text = objection(rank, their_version, addresses, agreement);
      !text.empty()) {
    refuse(stream, true, text);
    fail_startup(std::make_exception_ptr(PeerError(text, SourceLocation())));
    return;
  }
  Peer& other = at(rank);
  if (started_ && other.incarnation_from != incarnation) {
    refuse(stream, false,
           peer(options_.rank) + " is in a run that began with another process as " + name(rank) +
               "; it has to end first");
    return;
  }
  if (other.from != 0) wire_->cancel(other.from);
  other.from = stream;
  other.heard = Clock::now();
  if (other.incarnation_from != incarnation && traits != options_.traits)
    logging::info(message("GrpcGroup", peer(options_.rank), " has \"", options_.traits, "\", ",
                          peer(rank), " has \"", traits, "\""));
  other.incarnation_from = incarnation;
  other.ready.clear();
  other.left = false;
  if (!started_) list_changed();
  Packer packer({.kind = FrameKind::welcome});
  packer.put(incarnation_);
  wire_->send(stream, {.head = packer.take()});
  changed_.notify_all();
}

void Links::on_answer(int rank, FrameKind kind, Unpacker& answer) {
  const std::lock_guard lock(mutex_);
  Peer& peer = at(rank);
  if (kind == FrameKind::welcome) {
    peer.incarnation_to = answer.get<std::uint64_t>();
    peer.welcomed = true;
    list_changed();
  } else {
    const bool for_good = answer.get<bool>();
    peer.trouble = answer.get_text();
    if (for_good) fail_startup(std::make_exception_ptr(PeerError(peer.trouble, SourceLocation())));
  }
  changed_.notify_all();
}

}  // namespace lockstep
