// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/comm/communicator.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// PEM files of mutual TLS: both ends of every connection show a certificate that `ca` has signed.
// The certificate's subject alternative names hold the host by which others address this worker.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

struct GrpcOptions {
  int rank = 0;
  std::vector<std::string> addresses;   // "host:port" of every rank, the same list on all
  std::vector<std::string> names = {};  // for messages; empty: "worker 0", "worker 1", ...
  std::string listen_address = {};      // empty: addresses[rank]; "0.0.0.0:port" for all interfaces
  std::chrono::milliseconds startup_timeout = std::chrono::minutes(5);
  // Of wait() without a deadline: how long a rank that is alive may stay away.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(10);
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(10);  // silent so long: dead
  std::chrono::milliseconds warn_every = std::chrono::seconds(30);  // a waiter logs who is missing
  std::optional<TlsFiles> tls = {};                                 // none: plain text
  // Compared when workers meet, beside the addresses and the version of lockstep. They must not
  // differ in `agreement`; that they differ in `traits` (instruction set, number of cores) is
  // logged.
  std::string agreement = {};
  std::string traits = {};
};

// One process's end of a group whose ranks are processes, on any hosts, connected by gRPC: a stream
// of raw bytes from every rank to every other, served by one thread. Sums follow the canonical tree
// in every dtype. A rank's input may be in flight until its handle is done, so nothing is copied on
// the way out; what arrives is summed as it comes, and memory in use beyond the caller's stays below
// the size of the tensors under way.
//
// Beside what communicator.h says: the first failure ends the group for good (PeerError naming the
// worker and its address when a connection breaks or no sign of life has come for heartbeat_timeout;
// the peer's own error where it could still send one), and a collective that was under way then may
// have completed on some ranks and fail on others. A reason that is not a lockstep::Error reaches
// other processes as a PeerError with its text.
class LOCKSTEP_EXPORT GrpcGroup {
 public:
  // Binds, then waits until all ranks have found each other. Logs who is missing every 5 s. Throws
  // InvalidArgument for options that do not fit and files that cannot be read; Unavailable when the
  // address is taken or not of this machine, or this build has no gRPC; PeerError when ranks differ
  // in addresses, version or agreement; DeadlineExceeded naming who did not come.
  explicit GrpcGroup(GrpcOptions options);
  // Tells the others that this rank makes no more calls, and leaves within a few seconds. No handle
  // may be left. A rank that waits for this one in a collective gets a PeerError; others go on.
  ~GrpcGroup();
  GrpcGroup(const GrpcGroup&) = delete;
  GrpcGroup& operator=(const GrpcGroup&) = delete;

  int rank() const noexcept;
  int size() const noexcept;
  // This rank's communicator, valid as long as the group.
  Communicator& communicator();

  // Steps, if the caller has such: every rank calls begin_epoch() equally often, and calls meet only
  // those of the same epoch. A rank that waits for another in a collective gets a PeerError as soon
  // as that one makes a call in a later epoch, or has said by returned() that it makes no more calls
  // in this one; without these only the deadline tells. begin_epoch() forgets collectives that were
  // never completed; it throws FailedPrecondition when handles are left, and the reason if the group
  // has failed.
  void begin_epoch();
  void returned();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
