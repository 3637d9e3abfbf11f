// SPDX-License-Identifier: Apache-2.0
#include "distribute/gradient_plan.h"

#include <gmock/gmock.h>
#include <lockstep/device/device.h>
#include <lockstep/tensor/factory.h>

#include <numeric>
#include <string>

#include "support/errors.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

const std::vector<Device> kDevices{{DeviceKind::cpu, 0}, {DeviceKind::cpu, 1}};

std::vector<Variable> variables_of(std::vector<std::pair<std::int64_t, DType>> sizes) {
  std::vector<Variable> variables;
  for (const auto& [size, dtype] : sizes) variables.emplace_back(zeros({size}, dtype));
  return variables;
}

// The layout of a first step, which goes through the list from its end.
GradientLayout first_layout(const std::vector<Variable>& variables, std::int64_t bytes_per_pack) {
  std::vector<std::int64_t> order(variables.size());
  std::iota(order.rbegin(), order.rend(), std::int64_t{0});
  return GradientLayout(variables, order, {.bytes_per_pack = bytes_per_pack});
}

std::vector<std::size_t> bucket_of_each(const GradientLayout& layout) {
  std::vector<std::size_t> buckets;
  for (const auto& slot : layout.slots) buckets.push_back(slot.bucket);
  return buckets;
}

TEST(GradientLayout, WhatIsReadyFirstStandsFirst) {
  const auto variables = variables_of({{16, DType::f32}, {32, DType::f32}, {16, DType::f32}});
  const GradientLayout layout = first_layout(variables, 1 << 20);
  ASSERT_EQ(layout.arenas.size(), 1u);
  EXPECT_EQ(layout.slots[2].offset, 0);
  EXPECT_EQ(layout.slots[1].offset, 16);
  EXPECT_EQ(layout.slots[0].offset, 48);
  EXPECT_EQ(layout.arenas[0].elements, 64);
  EXPECT_THAT(bucket_of_each(layout), ElementsAre(0, 0, 0));
  const GradientLayout other(variables, std::vector<std::int64_t>{1, 0, 2},
                             {.bytes_per_pack = 1 << 20});
  EXPECT_EQ(other.slots[1].offset, 0);
  EXPECT_EQ(other.slots[0].offset, 32);
  EXPECT_EQ(other.slots[2].offset, 48);
}

TEST(GradientLayout, EveryGradientStartsOnACacheLine) {
  const GradientLayout layout =
      first_layout(variables_of({{3, DType::f32}, {5, DType::f32}, {17, DType::f32}}), 1 << 20);
  EXPECT_EQ(layout.slots[2].offset, 0);
  EXPECT_EQ(layout.slots[1].offset, 32);
  EXPECT_EQ(layout.slots[0].offset, 48);
}

TEST(GradientLayout, BucketsCloseOnceTheyExceedTheSize) {
  // 256 bytes each; a bucket of more than 300 bytes is closed: two to a bucket.
  const GradientLayout layout =
      first_layout(variables_of(std::vector(5, std::pair(std::int64_t{64}, DType::f32))), 300);
  EXPECT_THAT(bucket_of_each(layout), ElementsAre(2, 1, 1, 0, 0));
  ASSERT_EQ(layout.buckets.size(), 3u);
  std::int64_t next = 0;
  for (const auto& bucket : layout.buckets) {
    EXPECT_EQ(bucket.begin, next) << "buckets are consecutive ranges of the arena";
    next += bucket.count;
  }
  EXPECT_EQ(next, layout.arenas[0].elements);
  EXPECT_EQ(layout.buckets[2].num_variables, 1u);
}

TEST(GradientLayout, EachDTypeHasItsArena) {
  const GradientLayout layout =
      first_layout(variables_of({{16, DType::f64}, {16, DType::f32}, {8, DType::f64}}), 1 << 20);
  ASSERT_EQ(layout.arenas.size(), 2u);
  EXPECT_EQ(layout.slots[0].arena, layout.slots[2].arena);
  EXPECT_NE(layout.slots[0].arena, layout.slots[1].arena);
  EXPECT_NE(layout.slots[0].bucket, layout.slots[1].bucket);
  EXPECT_EQ(layout.buckets.size(), 2u);
}

TEST(GradientPlan, SharedMemoryTurnsOverBetweenTwoSets) {
  GradientPlan plan(variables_of({{16, DType::f32}}), kDevices, Packing{1 << 20}, 0);
  const auto shared = [&](int replica, std::uint64_t run) {
    return plan.memory_for(replica, plan.next_occasion(replica, run)).shared[0].data();
  };
  const void* const first = shared(0, 1);
  EXPECT_EQ(shared(1, 1), first) << "one reduction, one memory for all replicas";
  const void* const second = shared(0, 1);
  EXPECT_NE(second, first) << "the other replica may still read the sums before";
  EXPECT_EQ(shared(1, 1), second);
  EXPECT_EQ(shared(0, 2), first);
}

TEST(GradientPlan, MemoryThatSomebodyHoldsIsLeftAlone) {
  GradientPlan plan(variables_of({{16, DType::f32}}), kDevices, Packing{1 << 20}, 0);
  std::uint64_t run = 0;
  const auto local = [&](int replica) {
    ++run;
    return plan.memory_for(replica, plan.next_occasion(replica, run)).local[0];
  };
  const Buffer held = local(0).slice(0, 64);
  const void* const fresh = local(0).data();
  EXPECT_NE(fresh, held.data());
  EXPECT_EQ(local(0).data(), fresh) << "used again once let go";
  EXPECT_EQ(local(1).device().index, 1);
}

TEST(GradientPlan, AnOrderIsAdoptedAtTheNextOccasionByAll) {
  const auto variables = variables_of({{16, DType::f32}, {32, DType::f32}});
  GradientPlan plan(variables, kDevices, Packing{1 << 20}, 0);
  const auto offset_of_last = [&](int replica, std::uint64_t run) {
    const auto memory = plan.memory_for(replica, plan.next_occasion(replica, run));
    EXPECT_EQ(memory.guessed, run == 1);
    return memory.layout->slots[1].offset;
  };
  EXPECT_EQ(offset_of_last(0, 1), 0);
  plan.set_order(variables, std::vector<std::int64_t>{0, 1});
  EXPECT_EQ(offset_of_last(1, 1), 0) << "replica 1 comes late to the same reduction";
  EXPECT_EQ(offset_of_last(1, 2), 16);
  EXPECT_EQ(offset_of_last(0, 2), 16);
}

TEST(GradientPlans, AreFoundByTheList) {
  GradientPlans plans(kDevices, {});
  const auto a = variables_of({{16, DType::f32}, {8, DType::f32}});
  const auto b = variables_of({{16, DType::f32}});
  GradientPlan& first = plans.plan_for(a);
  GradientPlan& second = plans.plan_for(b);
  EXPECT_EQ(&plans.plan_for(a), &first);
  EXPECT_EQ(&plans.plan_for(b), &second);
  EXPECT_NE(&plans.plan_for(std::vector{a[1], a[0]}), &first);
  EXPECT_NE(first.sequence(0), second.sequence(0));
  EXPECT_EQ(first.sequence(1), first.sequence(0) + 1);
}

// As a program does that trains other variables at every step.
TEST(GradientPlans, KeepMemoryForAFewListsAndForgetTheOldest) {
  GradientPlans plans(kDevices, {.bytes_per_pack = 1 << 20});
  const auto bytes = [] { return memory_stats(kDevices[0]).in_use; };
  std::uint64_t run = 0;
  const auto reduce = [&](const std::vector<Variable>& variables) {
    plans.begin_run(++run);
    GradientPlan& plan = plans.plan_for(variables);
    for (const int replica : {0, 1}) plan.memory_for(replica, plan.next_occasion(replica, run));
    return std::string(plan.commit_name());
  };
  const auto first = variables_of({{1 << 16, DType::f32}});
  const std::string name = reduce(first);
  EXPECT_EQ(reduce(first), name);
  std::vector<std::vector<Variable>> lists;
  std::int64_t most = 0;
  for (int i = 0; i < 200; ++i) {
    lists.push_back(variables_of({{1 << 16, DType::f32}}));
    const std::int64_t before = bytes();
    reduce(lists.back());
    if (i == 20) most = bytes() - before;
    if (i > 20) {
      EXPECT_LE(bytes() - before, most) << i;
    }
  }
  EXPECT_NE(reduce(first), name) << "it was forgotten, and gets a name of its own";
  EXPECT_EQ(reduce(first), reduce(first));
}

}  // namespace
}  // namespace lockstep
