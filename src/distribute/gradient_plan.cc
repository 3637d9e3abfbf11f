// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_plan.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/accelerator.h"

namespace lockstep {
namespace {

constexpr std::int64_t kDefaultBytesPerPack = 1 << 20;
constexpr std::uint64_t kReleaseEvery = 100;   // runs
constexpr std::size_t kWithMemory = 4;         // plans that keep their arenas between uses
constexpr std::size_t kRemembered = 64;        // plans
constexpr std::int64_t kMaxBuckets = 1 << 20;  // of one plan, in the numbering of collectives

// Of names, numbers, dtypes and shapes in their order, the same in every process.
std::uint32_t hash_of(std::span<const Variable> variables) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const Variable& variable : variables)
    for (const char c : variable.name() + std::to_string(variable.number()) +
                            std::string(name_of(variable.dtype())) + variable.shape().to_string())
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace

GradientPlan::GradientPlan(std::span<const Variable> variables, std::span<const Device> devices,
                           const Packing& packing, std::int64_t id)
    : devices_(devices.begin(), devices.end()),
      packing_(packing),
      id_(id),
      commit_name_("commit of variable list " + std::to_string(id) + ", which begins with '" +
                   (variables.empty() ? std::string() : variables[0].name()) + "' and has hash " +
                   std::to_string(hash_of(variables))),
      local_(devices.size()),
      occasions_(devices.size()) {
  std::vector<std::int64_t> last_first(variables.size());
  std::iota(last_first.rbegin(), last_first.rend(), std::int64_t{0});
  layout_ = std::make_shared<const GradientLayout>(variables, last_first, packing_);
}

GradientPlan::Occasion GradientPlan::next_occasion(int replica, std::uint64_t run) {
  Occasion& last = occasions_[static_cast<std::size_t>(replica)];
  last = last.run == run ? Occasion{run, last.count + 1} : Occasion{run, 0};
  return last;
}

// Replaces arenas that do not fit the layout or of which somebody else holds a part.
void GradientPlan::make_usable(std::vector<Buffer>& arenas, const GradientLayout& layout,
                               Device device) {
  arenas.resize(layout.arenas.size());
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const std::size_t bytes = layout.arenas[i].bytes();
    if (arenas[i].unique() && arenas[i].bytes() == bytes) continue;
    arenas[i] = Buffer::allocate(device, bytes);
    zero_bytes(device, arenas[i].data(), bytes);  // the gaps between gradients
  }
}

GradientPlan::Memory GradientPlan::memory_for(int replica, Occasion occasion) {
  const auto index = static_cast<std::size_t>(replica);
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    if (occasion != current_) {
      if (next_layout_) {
        layout_ = std::exchange(next_layout_, nullptr);
        guessed_ = false;
      }
      const std::size_t next = (turn_ + 1) % kShared;
      if (devices_[0].is_host()) make_usable(shared_[next], *layout_, devices_[0]);
      turn_ = next;
      current_ = occasion;
    }
    memory.layout = layout_;
    memory.guessed = guessed_;
    memory.shared = shared_[turn_];
  }
  make_usable(local_[index], *memory.layout, devices_[index]);
  memory.local = local_[index];
  if (!devices_[0].is_host()) memory.shared = memory.local;
  return memory;
}

void GradientPlan::set_order(std::span<const Variable> variables,
                             std::span<const std::int64_t> order) {
  const std::lock_guard lock(mutex_);
  if (!guessed_ || next_layout_) return;
  next_layout_ = std::make_shared<const GradientLayout>(variables, order, packing_);
}

std::int64_t GradientPlan::sequence(std::size_t bucket) const {
  return id_ * kMaxBuckets + static_cast<std::int64_t>(bucket);
}

std::int64_t GradientPlan::order_sequence() const {
  return sequence(static_cast<std::size_t>(kMaxBuckets - 1));
}

std::int64_t GradientPlan::values_sequence(std::size_t variable) const {
  return order_sequence() - 1 - 2 * static_cast<std::int64_t>(variable);
}
std::int64_t GradientPlan::indices_sequence(std::size_t variable) const {
  return values_sequence(variable) - 1;
}

std::uint64_t GradientPlan::last_run() const {
  const std::lock_guard lock(mutex_);
  return current_.run;
}

void GradientPlan::release_if_unused(std::uint64_t since) {
  const std::lock_guard lock(mutex_);
  if (current_.run >= since) return;
  for (auto& arenas : local_) arenas.clear();
  for (auto& arenas : shared_) arenas.clear();
}

GradientPlans::GradientPlans(std::vector<Device> devices, const Packing& packing)
    : devices_(std::move(devices)),
      packing_{packing.bytes_per_pack ? packing.bytes_per_pack : kDefaultBytesPerPack,
               packing.num_packs} {
  require(packing.bytes_per_pack >= 0, SourceLocation{}, "CommunicationOptions",
          "expected bytes_per_pack >= 0, got ", packing.bytes_per_pack);
  require(packing.num_packs.value_or(0) >= 0, SourceLocation{}, "CommunicationOptions",
          "expected num_packs >= 0, got ", packing.num_packs.value_or(0));
}

GradientPlan& GradientPlans::plan_for(std::span<const Variable> variables) {
  const auto same = [&](const Entry& entry) {
    return std::equal(
        entry.keys.begin(), entry.keys.end(), variables.begin(), variables.end(),
        [](std::uint64_t key, const Variable& variable) { return key == variable.key(); });
  };
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) return *found->plan;
  Entry entry;
  for (const Variable& variable : variables) entry.keys.push_back(variable.key());
  entry.plan = std::make_unique<GradientPlan>(variables, devices_, packing_, next_id_++);
  return *entries_.emplace_back(std::move(entry)).plan;
}

void GradientPlans::begin_run(std::uint64_t run) {
  const std::lock_guard lock(mutex_);
  if (run % kReleaseEvery == 0)
    for (const Entry& entry : entries_) entry.plan->release_if_unused(run - kReleaseEvery);
  if (entries_.size() <= kWithMemory) return;
  // Those used last come first. All workers have made the same runs, so they forget the same plans.
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.plan->last_run() > b.plan->last_run();
  });
  for (std::size_t i = kWithMemory; i < entries_.size(); ++i)
    entries_[i].plan->release_if_unused(run - 1);
  while (entries_.size() > kRemembered && entries_.back().plan->last_run() + 1 < run)
    entries_.pop_back();
}

}  // namespace lockstep
