// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/buffer.h>
#include <lockstep/replica/variable.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "distribute/gradient_layout.h"

namespace lockstep {

// How a list of variables' gradients are reduced, step after step: their layout and the memory,
// which is handed out per step, so that a gradient somebody still holds is never overwritten. The
// first layout assumes backward to run through the list from its end; replica 0's first reduction
// then tells the order in which gradients really become ready, and from the next step on all
// replicas use that.
class GradientPlan {
 public:
  // One reduction: the n-th of this plan in a run.
  struct Occasion {
    std::uint64_t run = 0;
    std::int64_t count = 0;
    friend bool operator==(const Occasion&, const Occasion&) = default;
  };
  using Layout = std::shared_ptr<const GradientLayout>;

  // `id` numbers the plans of a strategy.
  GradientPlan(std::span<const Variable> variables, std::span<const Device> devices,
               const Packing& packing, std::int64_t id);

  // Numbers a local replica's reductions within a run.
  Occasion next_occasion(int replica, std::uint64_t run);
  // The layout, the replica's own arenas and those that all local replicas' sums go to. The same
  // layout and shared arenas for all replicas on one occasion; accelerators, whose streams keep what
  // is read now apart from what is written next, sum in place: `shared` are the replica's own. Throws
  // ResourceExhausted.
  struct Memory {
    Layout layout;
    std::vector<Buffer> local, shared;
    // The layout is a guess: replica 0's order is wanted.
    bool guessed = false;
  };
  Memory memory_for(int replica, Occasion occasion);

  // The order in which gradients became ready on global replica 0, as GradientLayout takes it, for
  // occasions to come. Told by every local replica before it ends this reduction, so that none can
  // begin the next one without it; the first counts.
  void set_order(std::span<const Variable> variables, std::span<const std::int64_t> order);

  // What the commit points of this plan are called, so that replicas that reduce different lists of
  // variables are found out. Lives as long as the plan.
  std::string_view commit_name() const { return commit_name_; }
  // The collective's sequence number of a bucket in the gradients channel, of the order, and of a
  // variable's rows and their indices.
  std::int64_t sequence(std::size_t bucket) const;
  std::int64_t order_sequence() const;
  std::int64_t values_sequence(std::size_t variable) const;
  std::int64_t indices_sequence(std::size_t variable) const;

  // The last run that reduced by it; 0 for none yet.
  std::uint64_t last_run() const;
  // Gives the memory back if no reduction took place since run `since`. Between runs.
  void release_if_unused(std::uint64_t since);

 private:
  // Consecutive reductions alternate between two sets of shared arenas: when reduction n begins,
  // every replica is past reduction n - 2, but some may still read the sums of n - 1.
  static constexpr std::size_t kShared = 2;

  static void make_usable(std::vector<Buffer>& arenas, const GradientLayout& layout, Device device);

  const std::vector<Device> devices_;
  const Packing packing_;
  const std::int64_t id_;
  const std::string commit_name_;
  std::vector<std::vector<Buffer>> local_;  // by replica; touched by its thread only
  std::vector<Occasion> occasions_;         // by replica; likewise
  mutable std::mutex mutex_;                // of what follows
  Layout layout_;                           // of the current occasion
  Layout next_layout_;                      // from the next one on; null: the same
  bool guessed_ = true;                     // layout_ is
  std::vector<Buffer> shared_[kShared];
  Occasion current_;
  std::size_t turn_ = 0;
};

// The plans of a strategy, one per list of variables. Thread-safe.
class GradientPlans {
 public:
  GradientPlans(std::vector<Device> devices, const Packing& packing);
  // The plan of a list of variables, made when it is first seen.
  GradientPlan& plan_for(std::span<const Variable> variables);
  // A run is about to begin: frees the memory of plans that are not used any more, like those of
  // models that are gone, and of all but a few where every step has a list of its own; many plans on,
  // they are forgotten.
  void begin_run(std::uint64_t run);

 private:
  struct Entry {
    std::vector<std::uint64_t> keys;
    std::unique_ptr<GradientPlan> plan;
  };
  const std::vector<Device> devices_;
  const Packing packing_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::int64_t next_id_ = 0;
};

}  // namespace lockstep
