// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_plan.h"

#include <lockstep/base/check.h>
#include <lockstep/comm/bucket.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep {
namespace {

constexpr std::int64_t kDefaultBytesPerPack = 1 << 20;
constexpr std::int64_t kAlignment = 64;  // bytes between the starts of gradients

std::int64_t aligned(std::int64_t elements, DType dtype) {
  const auto step = kAlignment / static_cast<std::int64_t>(size_of(dtype));
  return (elements + step - 1) / step * step;
}

}  // namespace

GradientPlan::GradientPlan(std::span<const Variable> variables, std::span<const Device> devices,
                           std::int64_t bytes_per_pack, std::int64_t first_sequence)
    : devices_(devices.begin(), devices.end()),
      slots_(variables.size()),
      first_sequence_(first_sequence),
      local_(devices.size()),
      occasions_(devices.size()) {
  lay_out(variables, bytes_per_pack);
}

void GradientPlan::lay_out(std::span<const Variable> variables, std::int64_t bytes_per_pack) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::size_t> members;  // of this dtype, last made first
    for (std::size_t i = variables.size(); i-- > 0;)
      if (variables[i].dtype() == dtype) members.push_back(i);
    if (members.empty()) continue;
    Arena arena{.dtype = dtype};
    std::vector<std::int64_t> bytes;
    for (const std::size_t i : members) {
      slots_[i] = {arenas_.size(), arena.elements, variables[i].num_elements(), 0};
      const std::int64_t extent = aligned(variables[i].num_elements(), dtype);
      arena.elements += extent;
      bytes.push_back(extent * static_cast<std::int64_t>(size_of(dtype)));
    }
    for (const Bucket& bucket : group_by_size(bytes, bytes_per_pack)) {
      const std::int64_t begin = slots_[members[bucket.begin]].offset;
      const std::int64_t end = bucket.end < members.size() ? slots_[members[bucket.end]].offset : arena.elements;
      for (std::size_t m = bucket.begin; m < bucket.end; ++m) slots_[members[m]].bucket = buckets_.size();
      buckets_.push_back({arenas_.size(), begin, end - begin, bucket.end - bucket.begin});
    }
    arenas_.push_back(arena);
  }
}

GradientPlan::Occasion GradientPlan::next_occasion(int replica, std::uint64_t run) {
  Occasion& last = occasions_[static_cast<std::size_t>(replica)];
  last = last.run == run ? Occasion{run, last.count + 1} : Occasion{run, 0};
  return last;
}

// The arenas themselves where nobody else holds a part of them, fresh memory otherwise.
std::vector<Buffer> GradientPlan::usable(std::vector<Buffer>& arenas, Device device) const {
  arenas.resize(arenas_.size());
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    if (arenas[i].unique()) continue;
    arenas[i] = Buffer::allocate(device, arenas_[i].bytes());
    if (arenas[i].bytes()) std::memset(arenas[i].data(), 0, arenas[i].bytes());  // the gaps between gradients
  }
  return arenas;
}

std::vector<Buffer> GradientPlan::local_arenas(int replica) {
  const auto index = static_cast<std::size_t>(replica);
  return usable(local_[index], devices_[index]);
}

std::vector<Buffer> GradientPlan::shared_arenas(Occasion occasion) {
  const std::lock_guard lock(mutex_);
  if (occasion == current_) return shared_[turn_];
  const std::size_t next = (turn_ + 1) % kShared;
  std::vector<Buffer> arenas = usable(shared_[next], devices_[0]);
  turn_ = next;
  current_ = occasion;
  return arenas;
}

GradientPlans::GradientPlans(std::vector<Device> devices, std::int64_t bytes_per_pack)
    : devices_(std::move(devices)),
      bytes_per_pack_(bytes_per_pack ? bytes_per_pack : kDefaultBytesPerPack) {
  require(bytes_per_pack >= 0, SourceLocation{}, "CommunicationOptions", "expected bytes_per_pack >= 0, got ",
          bytes_per_pack);
}

GradientPlan& GradientPlans::plan_for(std::span<const Variable> variables) {
  const auto same = [&](const Entry& entry) {
    return std::equal(entry.keys.begin(), entry.keys.end(), variables.begin(), variables.end(),
                      [](std::uint64_t key, const Variable& variable) { return key == variable.key(); });
  };
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) return *found->plan;
  Entry entry;
  for (const Variable& variable : variables) entry.keys.push_back(variable.key());
  entry.plan = std::make_unique<GradientPlan>(variables, devices_, bytes_per_pack_, next_sequence_);
  next_sequence_ += static_cast<std::int64_t>(entry.plan->buckets().size());
  return *entries_.emplace_back(std::move(entry)).plan;
}

}  // namespace lockstep
