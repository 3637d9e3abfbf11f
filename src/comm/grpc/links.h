// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <lockstep/comm/grpc.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/grpc/frames.h"
#include "comm/grpc/wire.h"

namespace lockstep {

// What happens to the links, in the wire's thread.
class LinkEvents {
 public:
  // `frame` is positioned behind the header; a PeerError thrown here is a broken protocol.
  virtual void received(int rank, const FrameHeader& header, Message& frame) = 0;
  virtual void left(int rank) = 0;  // it has said goodbye
  virtual void lost(int rank, const std::string& why) = 0;
  virtual void failed(std::exception_ptr reason) = 0;  // as a peer says

 protected:
  ~LinkEvents() = default;
};

// The connections of one rank: a stream to every other rank, on which it sends, and one from each,
// on which it receives. Finds the others, sees to it that all belong to the same run of the same
// cluster, and notices when one is gone.
//
// Invariants
//   1. mutex_ guards peers_ and what connect() waits for; no event is passed on with it held.
//   2. Every start of a process has an incarnation, a random number. A stream is accepted from one
//      incarnation of a rank only, and nobody leaves connect() before all have shown each other the
//      same list of them: so the processes of two runs never mix.
//   3. What decides that a peer is gone is the stream that comes from it, on which its goodbye or
//      its reason would have come; the end of the other one is given kGrace to be explained.
class Links final : public WireEvents {
 public:
  Links(const GrpcOptions& options, LinkEvents& events);
  ~Links();

  // Waits for all ranks; see GrpcGroup's constructor for what it throws.
  void connect();
  void send(int rank, Outgoing frame);
  void send_to_all(const std::vector<std::byte>& frame);
  Wire& wire() { return *wire_; }
  // Says goodbye and waits until the others have taken note, until the deadline at most.
  void leave(Deadline deadline);
  // Ends all streams at once.
  void sever();

  // `worker 1 (127.0.0.1:20001)`.
  std::string peer(int rank) const;
  const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
  const std::string& address(int rank) const {
    return options_.addresses[static_cast<std::size_t>(rank)];
  }
  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.addresses.size()); }

  void received(StreamId stream, Message message) override;
  void ended(StreamId stream, const std::string& why) override;
  void tick() override;

 private:
  using Clock = Deadline::Clock;
  struct Peer {
    StreamId to = 0, from = 0;  // 0: none
    bool welcomed = false;      // it has accepted `to`
    std::uint64_t incarnation_to = 0, incarnation_from = 0;
    bool ready_sent = false;
    std::vector<std::uint64_t> ready;  // the incarnations it has found; empty: not yet all
    bool left = false, lost = false;
    std::string trouble;  // why it cannot be reached
    Clock::time_point opened{}, heard{}, sent{}, to_ended{};

    // It had found everybody, and its program was over before this one's start-up.
    bool done() const { return left && !ready.empty(); }
    bool linked() const {
      return (done() || (welcomed && from != 0)) && incarnation_to == incarnation_from;
    }
  };

  // With mutex_ held.
  void open_missing();
  void send_ready();
  std::vector<std::uint64_t> incarnations() const;
  bool all_linked() const;
  bool all_ready() const;
  void list_changed();
  std::string missing() const;
  std::string hint(const std::string& trouble) const;
  void fail_startup(std::exception_ptr reason);
  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  struct End {
    int rank = -1;
    bool outgoing = false;
  };
  End end_of(StreamId stream) const;

  std::vector<std::byte> hello() const;
  std::string objection(int rank, const std::string& version, const std::string& addresses,
                        const std::string& agreement) const;
  void refuse(StreamId stream, bool for_good, const std::string& text);
  void on_hello(StreamId stream, Unpacker& hello);
  void on_answer(int rank, FrameKind kind, Unpacker& answer);
  void dispatch(int rank, const FrameHeader& header, Message& message);
  void lose(int rank, const std::string& why);

  const GrpcOptions options_;
  const std::vector<std::string> names_;
  const std::uint64_t incarnation_;
  LinkEvents& events_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::exception_ptr startup_failure_;
  bool started_ = false, leaving_ = false;
  Clock::time_point last_tick_{};
  std::unique_ptr<Wire> wire_;  // last: its thread uses everything above
};

}  // namespace lockstep
