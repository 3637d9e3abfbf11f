// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/hierarchical.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/call.h"

namespace lockstep {

// The collectives that the local ranks of a worker have under way, each in two parts.
//
// Invariants
//   1. mutex_ guards the list of joints and who has entered which; it is held while a rank enters
//      the local part, so that joints pair the same calls as the local group does.
//   2. A joint is local until its last rank has finished the local part and entered the one between
//      workers, then between, then finished; or it fails. Whoever waits or asks first finishes it,
//      under the joint's own mutex.
class HierarchicalBoard {
 public:
  enum class Stage : std::uint8_t { local, between, finished, failed };
  struct Joint;
  struct Handle final : PendingCall {
    HierarchicalBoard* board = nullptr;
    Joint* joint = nullptr;
    int rank = 0;
    bool seated = false;
    Pending local;

    bool done() override { return board->done(*this); }
    void wait(std::optional<Deadline> deadline) override { board->wait(*this, deadline); }
    void release() noexcept override { board->release(*this); }
  };
  struct Joint {
    explicit Joint(HierarchicalBoard& board);
    bool is(Stage which) const { return stage.load(std::memory_order_acquire) == which; }

    CollectiveCall call;
    int entered = 0;                  // local ranks
    int handles = 0;                  // of them that are left
    std::unique_ptr<Handle[]> ranks;  // by local rank
    std::vector<std::byte*> outputs;  // by local rank
    std::vector<std::byte> scratch;   // of a reduce_scatter: sums of the local ranks
    std::atomic<Stage> stage{Stage::local};
    std::mutex mutex;  // guards the next two
    Pending between;
    std::exception_ptr failure;
  };

  HierarchicalBoard(InProcessGroup& local, Communicator& between, InProcessOptions options);
  ~HierarchicalBoard();

  int local_size() const { return local_.size(); }
  Communicator& local(int rank) { return local_.rank(rank); }
  Communicator& between() const { return between_; }

  // Enters a local rank by `enter_local(joint)`; the last one goes on to `enter_between(joint)`.
  template <class Local, class Between>
  Pending enter(int rank, const CollectiveCall& call, void* output, const Local& enter_local,
                const Between& enter_between) {
    bool last = false;
    Joint& joint = sit_down(rank, call, output, last, [&](Joint& at) { return enter_local(at); });
    if (last) go_between(joint, rank, [&] { return enter_between(joint); });
    return Pending(joint.ranks[rank]);
  }
  void abort(int rank, const std::exception_ptr& reason) noexcept;
  void begin_epoch();
  // Where in the scratch memory the parts of this worker's ranks are.
  Elements own_parts(Joint& joint) const;

 private:
  using EnterLocal = std::function<Pending(Joint&)>;
  using EnterBetween = std::function<Pending()>;

  Joint& sit_down(int rank, const CollectiveCall& call, void* output, bool& last,
                  const EnterLocal& enter_local);
  void go_between(Joint& joint, int rank, const EnterBetween& enter_between);
  // With mutex_ held.
  static void check_agreement(const Joint& joint, const CollectiveCall& call);
  Joint& find(int rank, const CollectiveCall& call);
  void recycle(Joint& joint) noexcept;
  // With the joint's mutex held.
  void fail(Joint& joint, int rank, const std::exception_ptr& reason) noexcept;
  void finish_between(Joint& joint, int rank, std::optional<Deadline> deadline) noexcept;
  void share_out(const Joint& joint) const;

  // What a handle does.
  bool done(Handle& handle);
  void wait(Handle& handle, std::optional<Deadline> deadline);
  void release(Handle& handle) noexcept;

  InProcessGroup& local_;
  Communicator& between_;
  const InProcessOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Joint>> joints_;  // all there are
  std::vector<Joint*> live_;                    // in order of opening
  std::vector<Joint*> free_;
};

}  // namespace lockstep
