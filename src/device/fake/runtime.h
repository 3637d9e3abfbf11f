// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/deadline.h>
#include <lockstep/device/stream.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/accelerator.h"
#include "device/fake/access_log.h"
#include "device/fake/guarded_memory.h"

namespace lockstep::fake {

struct Options {
  int devices = 2;
  std::uint64_t seed = 0;
  // Runs what is put as soon as nothing that it must wait for is open, in place of late and in odd
  // orders. It finds less.
  bool eager = false;
  bool guard_memory = true;
};

// What the streams of one fake device work with. Streams are this runtime's.
struct Queue;

// What one rank brings to a collective.
struct Contribution {
  std::string text;  // the call; all ranks must say the same
  const void* in = nullptr;
  void* out = nullptr;
};
using Together = std::function<void(std::span<const Contribution> by_rank)>;

// Ranks whose n-th collectives meet, whatever they are: as NCCL's communicators.
struct Group {
  explicit Group(int size) : issued(static_cast<std::size_t>(size)), done(issued) {}
  std::vector<std::int64_t> issued, done;  // by rank
  std::uint64_t epoch = 0;                 // abort() ends one
};

// The streams of all fake devices under one lock: a seeded scheduler that runs what was put late and
// in every order that CUDA's rules allow, and a checker that reports what no such order may do. The
// rules: a stream runs in order; a wait holds it until the point is reached; a collective runs when
// every rank's stream has come to it; nothing else orders anything.
class Runtime {
 public:
  explicit Runtime(const Options& options);
  ~Runtime();

  int devices() const { return static_cast<int>(memory_.size()); }
  Queue* queue(int device, StreamRole role);
  GuardedMemory& memory(int device) { return *memory_[static_cast<std::size_t>(device)]; }

  // A block of a device's pool is taken, and given back.
  void handed_out(int device, void* data, std::size_t bytes);
  void returned(void* data);

  void launch(Queue* queue, const LaunchInfo& info, std::function<void()> kernel);
  std::shared_ptr<void> record(Queue* queue);
  void wait(Queue* queue, const std::shared_ptr<void>& point);
  void meet(Queue* queue, const std::shared_ptr<Group>& group, int rank, Contribution contribution,
            const LaunchInfo& info, Together together);
  // Collectives of the group that have not met yet do nothing; their streams go on.
  void abort(Group& group);
  // Throws what a kernel threw, and DeadlineExceeded when nothing can run any more.
  void synchronize(Queue* queue);

  // Runs all that can run; what cannot is a finding.
  void drain();
  std::vector<std::string> findings();

  struct Operation;  // what streams hold
  struct Point;      // of an event

 private:
  using Lock = std::lock_guard<std::mutex>;

  void put(Queue& queue, Operation operation);
  void check_allocated(const Operation& operation, const Queue& queue);
  void run_some();
  bool step();
  bool ready(const Queue& queue) const;
  bool all_have_come(const Group& group) const;
  Queue* waiting_rank(const Group& group, int rank) const;
  void run(Queue& queue);
  void run_together(const std::shared_ptr<Group>& group);
  void note_accesses(const Queue& queue, const Operation& operation);
  void call(const Operation& operation, Queue& queue, const std::function<void()>& function);
  void finish(Queue& queue);
  std::string where_all_wait() const;
  void find(std::string text);

  const bool eager_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;  // by device
  std::vector<std::unique_ptr<Queue>> queues_;          // two for each device
  std::map<std::uintptr_t, std::size_t> live_;  // blocks that are handed out: first byte, size
  std::map<std::thread::id, Clock> threads_;    // what each thread has waited for
  std::set<std::string, std::less<>> names_;
  AccessLog log_;
  std::vector<std::string> findings_;
};

}  // namespace lockstep::fake
