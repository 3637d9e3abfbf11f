// SPDX-License-Identifier: Apache-2.0
// Threads that a step function starts.
#include <lockstep/distribute.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random.h>

#include <optional>
#include <thread>

#include "support/errors.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using ::testing::Each;
using ::testing::ElementsAre;

class Inherit : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  const MirroredStrategy strategy = replicas(2, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Modes, Inherit, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Inherit, AHelperThreadIsInItsReplica) {
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0f));
  strategy.run([&] { v.assign(Tensor(10 + replica_id())); });
  const auto sums = strategy.run([&] {
    Tensor sum;
    std::thread([&, context = ReplicaContext::Inherit()] {
      const auto entered = context.enter();
      EXPECT_TRUE(has_strategy());
      EXPECT_EQ(current_device().index, replica_index());
      sum = get_replica_context()->all_reduce(ReduceOp::sum, v.read());
      v.assign_add(Tensor(1.0f));
    }).join();
    EXPECT_EQ(v.read().item<float>(), 11 + replica_id());
    return sum;
  });
  EXPECT_THAT(items(sums), Each(21));
}

TEST_P(Inherit, AHelperThreadContinuesTheReplicasRandomNumbers) {
  const auto other = replicas(2, GetParam());
  const auto draw = [] { return uniform({}, 0, 1); };
  const auto alone = strategy.run([&] {
    draw();
    return draw();
  });
  const auto helped = other.run([&] {
    draw();
    Tensor second;
    std::thread([&, context = ReplicaContext::Inherit()] {
      const auto entered = context.enter();
      second = draw();
    }).join();
    return second;
  });
  EXPECT_EQ(items(alone), items(helped));
}

TEST_P(Inherit, AHelperHandsTheContextOn) {
  const auto ids = strategy.run([] {
    int id = -1;
    std::thread([&, context = ReplicaContext::Inherit()] {
      const auto entered = context.enter();
      std::thread([&, inner = ReplicaContext::Inherit()] {
        const auto inner_entered = inner.enter();
        id = replica_index();
      }).join();
    }).join();
    return id;
  });
  EXPECT_THAT(std::vector<int>(ids.begin(), ids.end()), ElementsAre(0, 1));
}

TEST_P(Inherit, TheStepsEndEndsIt) {
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f), {.name = "v"});
  std::optional<ReplicaContext::Inherit> kept;
  strategy.run([&] {
    if (replica_index() == 1) kept.emplace();
  });
  const auto expect_over = [&] {
    EXPECT_THAT([&] { const auto entered = kept->enter(); },
                throws<FailedPrecondition>("[ReplicaContext::Inherit]", "step is over", "join"));
  };
  expect_over();
  strategy.run([&] {  // the next step is another one
    if (replica_index() == 1) expect_over();
  });
}

TEST_P(Inherit, WhatIsDoneAfterTheStepIsRefused) {
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f), {.name = "v"});
  std::atomic<bool> entered_it{false}, over{false};
  std::thread late;
  strategy.run([&] {
    if (replica_index() != 1) return;
    late = std::thread([&, context = ReplicaContext::Inherit()] {
      const auto entered = context.enter();
      EXPECT_EQ(v.read().item<float>(), 1);
      entered_it = true;
      entered_it.notify_one();
      over.wait(false);
      EXPECT_THAT([&] { v.read(); },
                  throws<FailedPrecondition>("[Variable::read]", "step", "over"));
      EXPECT_THAT([&] { v.assign(Tensor(2.0f)); }, throws<FailedPrecondition>("over"));
      EXPECT_THAT([&] { get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f)); },
                  throws<FailedPrecondition>("[ReplicaContext::all_reduce]", "over"));
    });
    entered_it.wait(false);
  });
  over = true;
  over.notify_one();
  late.join();
}

TEST_P(Inherit, WithoutItACapturedContextIsRefused) {
  strategy.run([] {
    ReplicaContext& context = *get_replica_context();
    std::thread([&] {
      EXPECT_THAT([&] { context.all_reduce(ReduceOp::sum, Tensor(1.0f)); },
                  throws<FailedPrecondition>("[ReplicaContext::all_reduce]", "Inherit"));
    }).join();
  });
}

TEST_P(Inherit, ThereIsNothingToInheritInAMergeCall) {
  strategy.run([] {
    get_replica_context()->merge_call([] {
      EXPECT_THAT([] { const ReplicaContext::Inherit context; },
                  throws<FailedPrecondition>("[ReplicaContext::Inherit]", "cross-replica"));
    });
  });
}

TEST(InheritWithoutAStrategy, IsTheSameProgram) {
  std::thread([context = ReplicaContext::Inherit()] {
    const auto entered = context.enter();
    EXPECT_EQ(get_replica_context()->num_replicas_in_sync(), 1);
    EXPECT_FALSE(has_strategy());
  }).join();
}

}  // namespace
}  // namespace lockstep
