// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/device/device.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/context.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "support/process.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::num_threads;
using lockstep::testing::QuietLog;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using ::testing::Each;

constexpr int kReplicas = 8;

// What the steps throw; counted, so that one that is kept is found.
class Planned : public std::exception {
 public:
  Planned() { ++alive; }
  Planned(const Planned& other) : std::exception(other) { ++alive; }
  ~Planned() override { --alive; }
  const char* what() const noexcept override { return "planned"; }
  static inline std::atomic<int> alive{0};
};

// Numbers for a run, the same on all replicas.
class Dice {
 public:
  explicit Dice(std::uint64_t run) : state_((run + 1) * 0x9e3779b97f4a7c15u) {}
  int below(int bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_;
};

void fail_if(bool planned) {
  if (planned) throw Planned();
}

// A step through every context: a merge_call whose function reduces what replicas handed over, opens
// the scope again and updates each component; merges of a merge's result; and an update in the
// replica. It fails in the place of this number, on one replica; -1: nowhere.
void step(const Strategy& strategy, Variable total, Dice dice, int place, int victim) {
  ReplicaContext& replica = *get_replica_context();
  const bool mine = replica.replica_index() == victim;
  fail_if(mine && place == 0);
  const int merges = 1 + dice.below(3);
  Tensor value(1.0F);
  for (int i = 0; i < merges; ++i) {
    const bool fails = place == 1 && i == merges - 1;
    value = replica.merge_call(
        [&](const PerReplica<Tensor>& values) {
          const auto sum = strategy.reduce_to(ReduceOp::sum, values, total);
          const auto scope = strategy.scope();
          fail_if(fails);
          return strategy.update(
              total,
              [&](Variable own, const Tensor& by) {
                fail_if(fails);
                own.assign_add(by);
                return by / kReplicas;
              },
              sum);
        },
        value);
    fail_if(mine && place == 2);
  }
  EXPECT_EQ(replica.all_reduce(ReduceOp::sum, 1), kReplicas);
  replica.update(total, [&](Variable own) {
    fail_if(mine && place == 3);
    EXPECT_TRUE(in_cross_replica_context());
    own.assign_sub(Tensor(static_cast<float>(kReplicas * merges)));
  });
  EXPECT_EQ(get_replica_context(), &replica);
  fail_if(mine && place == 4);
}

class ContextStress : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, ContextStress, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(ContextStress, TenThousandRunsEndAndLeaveNothing) {
  const QuietLog quiet;
  const Strategy strategy = replicas(kReplicas, GetParam());
  Variable total = [&] {
    const auto scope = strategy.scope();
    return Variable(Tensor(0.0F));
  }();
  int thrown = 0;
  const int threads = num_threads();
  std::int64_t in_use = 0;
  for (int run = 0; run < 10'000; ++run) {
    Dice dice(static_cast<std::uint64_t>(run));
    const int place = dice.below(10) - 5, victim = dice.below(kReplicas);
    try {
      strategy.run([&] { step(strategy, total, dice, place, victim); });
      ASSERT_LT(place, 0);
      ASSERT_THAT(items(total.local_values()), Each(0)) << "after run " << run;
    } catch (const Planned&) {
      ASSERT_GE(place, 0);
      ++thrown;
      total.assign(Tensor(0.0F));
    }
    ASSERT_FALSE(has_strategy());
    ASSERT_LE(Planned::alive.load(), 1) << "the last one is kept until the next run";
    if (run == 100) in_use = memory_stats(Device{}).in_use;
  }
  EXPECT_GT(thrown, 4'000);
  strategy.run([] {});
  EXPECT_EQ(Planned::alive.load(), 0);
  EXPECT_EQ(num_threads(), threads);
  EXPECT_EQ(memory_stats(Device{}).in_use, in_use);
  testing::require_equal_replicas(std::vector{total});
}

}  // namespace
}  // namespace lockstep
