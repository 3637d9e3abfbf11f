// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/buffer.h>
#include <lockstep/replica/variable.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace lockstep {

// Where the gradients of a list of variables stand while they are reduced: one flat arena per dtype, in
// reverse creation order (backward's order), cut into buckets that are contiguous ranges of an arena.
// Layout is immutable; the memory is handed out per step, so that a gradient somebody still holds is
// never overwritten.
class GradientPlan {
 public:
  struct Slot {  // of one variable
    std::size_t arena = 0;
    std::int64_t offset = 0;  // in elements
    std::int64_t count = 0;
    std::size_t bucket = 0;
  };
  struct Arena {
    DType dtype;
    std::int64_t elements = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(elements) * size_of(dtype); }
  };
  struct Range {  // of one bucket
    std::size_t arena = 0;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::size_t num_variables = 0;
  };
  // One reduction: the n-th of this plan in a run.
  struct Occasion {
    std::uint64_t run = 0;
    std::int64_t count = 0;
    friend bool operator==(const Occasion&, const Occasion&) = default;
  };

  GradientPlan(std::span<const Variable> variables, std::span<const Device> devices,
               std::int64_t bytes_per_pack, std::int64_t first_sequence);

  std::span<const Slot> slots() const { return slots_; }
  std::span<const Arena> arenas() const { return arenas_; }
  std::span<const Range> buckets() const { return buckets_; }
  // The collective's sequence number of bucket 0 in the gradients channel.
  std::int64_t first_sequence() const { return first_sequence_; }

  // Numbers a local replica's reductions within a run.
  Occasion next_occasion(int replica, std::uint64_t run);
  // A local replica's own arenas, and those that all local replicas' sums go to. Throws
  // ResourceExhausted.
  std::vector<Buffer> local_arenas(int replica);
  std::vector<Buffer> shared_arenas(Occasion occasion);

 private:
  void lay_out(std::span<const Variable> variables, std::int64_t bytes_per_pack);
  std::vector<Buffer> usable(std::vector<Buffer>& arenas, Device device) const;

  // Consecutive reductions alternate between two sets of shared arenas: when reduction n begins, every
  // replica is past reduction n - 2, but some may still read the sums of n - 1.
  static constexpr std::size_t kShared = 2;

  std::vector<Device> devices_;
  std::vector<Slot> slots_;
  std::vector<Arena> arenas_;
  std::vector<Range> buckets_;
  const std::int64_t first_sequence_;
  std::vector<std::vector<Buffer>> local_;   // by replica; touched by its thread only
  std::vector<Occasion> occasions_;          // by replica; likewise
  std::mutex mutex_;                         // of what follows
  std::vector<Buffer> shared_[kShared];
  Occasion current_;
  std::size_t turn_ = 0;
};

// The plans of a strategy, one per list of variables. Thread-safe.
class GradientPlans {
 public:
  GradientPlans(std::vector<Device> devices, std::int64_t bytes_per_pack);
  // The plan of a list of variables, made when it is first seen.
  GradientPlan& plan_for(std::span<const Variable> variables);

 private:
  struct Entry {
    std::vector<std::uint64_t> keys;
    std::unique_ptr<GradientPlan> plan;
  };
  const std::vector<Device> devices_;
  const std::int64_t bytes_per_pack_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::int64_t next_sequence_ = 0;
};

}  // namespace lockstep
