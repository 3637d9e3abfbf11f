// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/from_tensors.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/nn.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <thread>

#include "support/errors.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::name_of;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

void expect_outside() {
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  ASSERT_NE(get_replica_context(), nullptr);
  EXPECT_EQ(get_replica_context()->num_replicas_in_sync(), 1);
}

void expect_cross_replica() {
  EXPECT_TRUE(has_strategy());
  EXPECT_TRUE(in_cross_replica_context());
  EXPECT_EQ(get_replica_context(), nullptr);
}

class Contexts : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  const MirroredStrategy strategy = replicas(2, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Modes, Contexts, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Contexts, CTX02_ScopesOfOneStrategyNest) {
  {
    const auto outer = strategy.scope();
    expect_cross_replica();
    {
      const auto inner = strategy.scope();
      expect_cross_replica();
    }
    expect_cross_replica();
  }
  expect_outside();
}

TEST_P(Contexts, TheStrategyIsThatOfTheContext) {
  EXPECT_EQ(get_strategy(), std::nullopt);
  const Strategy own = strategy;
  {
    const auto scope = strategy.scope();
    EXPECT_EQ(get_strategy(), own);
  }
  strategy.run([&] {
    EXPECT_EQ(get_strategy(), own);
    get_replica_context()->merge_call([&] { EXPECT_EQ(get_strategy(), own); });
  });
  set_strategy(own);
  EXPECT_EQ(get_strategy(), own);
  set_strategy(std::nullopt);
  EXPECT_EQ(get_strategy(), std::nullopt);
}

TEST_P(Contexts, CTX04_TheVerbsAreRefusedInAStep) {
  const PerReplica<Tensor> value({Tensor(1.0f), Tensor(2.0f)});
  const Strategy& s = strategy;
  s.run([&] {
    EXPECT_THAT([&] { s.run([] {}); },
                throws<FailedPrecondition>("[Strategy::run]", "step function", "merge_call"));
    EXPECT_THAT([&] { s.reduce(ReduceOp::sum, value); },
                throws<FailedPrecondition>("[Strategy::reduce]", "merge_call"));
    EXPECT_THAT([&] { const auto scope = s.scope(); },
                throws<FailedPrecondition>("[Strategy::scope]"));
    EXPECT_THAT([&] { s.gather(value); }, throws<FailedPrecondition>("[Strategy::gather]"));
    EXPECT_THAT([&] { s.distribute_dataset(data::range(8).batch(4)); },
                throws<FailedPrecondition>("[Strategy::distribute_dataset]"));
  });
}

TEST_P(Contexts, CTX05_AProcessWideStrategy) {
  set_strategy(strategy);
  expect_cross_replica();
  std::thread(expect_cross_replica).join();
  EXPECT_EQ(Variable(vec({1})).local_values().size(), 2u);
  strategy.run([] { EXPECT_FALSE(in_cross_replica_context()); });
  const auto other = replicas(3);
  EXPECT_THAT([&] { const auto scope = other.scope(); },
              throws<FailedPrecondition>("[Strategy::scope]", "do not mix strategies"));
  set_strategy(other);
  EXPECT_EQ(current_replica_group(), other.implementation());
  set_strategy(std::nullopt);
  expect_outside();
  const auto scope = strategy.scope();
  for (const auto& refused : {std::optional<Strategy>(strategy), std::optional<Strategy>()})
    EXPECT_THAT([&] { set_strategy(refused); },
                throws<FailedPrecondition>("[set_strategy]", "no scope is open"));
  expect_cross_replica();
}

TEST_P(Contexts, AProcessWideStrategyIsNotSetInAStep) {
  EXPECT_THAT([&] { strategy.run([&] { set_strategy(strategy); }); },
              throws<FailedPrecondition>("[set_strategy]", "step function"));
  expect_outside();
}

TEST_P(Contexts, AStepIsInAReplica) {
  strategy.run([&] {
    EXPECT_TRUE(has_strategy());
    EXPECT_FALSE(in_cross_replica_context());
    EXPECT_EQ(get_replica_context()->num_replicas_in_sync(), 2);
    EXPECT_EQ(current_replica_group().get(), strategy.implementation().get());
    EXPECT_EQ(current_device().index, testing::replica_index()) << "factories place tensors there";
  });
  expect_outside();
}

TEST_P(Contexts, AStepRunFromAScopeReturnsToIt) {
  const auto scope = strategy.scope();
  strategy.run([] { EXPECT_FALSE(in_cross_replica_context()); });
  expect_cross_replica();
}

TEST_P(Contexts, AStepThatThrowsReturnsToTheContextBefore) {
  const testing::QuietLog quiet;
  EXPECT_THROW(strategy.run([] { throw 1; }), int);
  expect_outside();
  const auto scope = strategy.scope();
  EXPECT_THROW(strategy.run([] { throw 1; }), int);
  expect_cross_replica();
}

TEST_P(Contexts, StrategiesDoNotMix) {
  const auto other = replicas(2);
  {
    const auto scope = strategy.scope();
    EXPECT_THAT([&] { const auto inner = other.scope(); },
                throws<FailedPrecondition>("[Strategy::scope]", "mix"));
    EXPECT_THAT([&] { other.run([] {}); }, throws<FailedPrecondition>("[Strategy::run]", "mix"));
  }
  strategy.run([&] {
    EXPECT_THAT([&] { const auto inner = other.scope(); }, throws<FailedPrecondition>("mix"));
    EXPECT_THAT([&] { other.run([] {}); }, throws<FailedPrecondition>("mix"));
  });
}

TEST_P(Contexts, MergeCallIsOnTheCrossReplicaSide) {
  int merges = 0;
  strategy.run([&] {
    ReplicaContext* const context = get_replica_context();
    context->merge_call([&] {
      ++merges;
      expect_cross_replica();
      EXPECT_THAT([&] { strategy.run([] {}); }, throws<FailedPrecondition>("[Strategy::run]"));
      EXPECT_EQ(strategy.reduce(ReduceOp::sum, PerReplica<Tensor>({Tensor(1.0f), Tensor(2.0f)}))
                    .item<float>(),
                3);
    });
    EXPECT_EQ(get_replica_context(), context);
  });
  EXPECT_EQ(merges, 1);
}

TEST_P(Contexts, AThreadStartedInAStepSeesNoReplica) {
  strategy.run([] { std::thread(expect_outside).join(); });
}

TEST(StrategyHandle, CopiesAndSlicesAreTheSameStrategy) {
  const auto strategy = replicas(2);
  const Strategy sliced = strategy;
  EXPECT_EQ(sliced, strategy);
  EXPECT_FALSE(sliced == replicas(2));
  const auto scope = sliced.scope();
  const auto inner = strategy.scope();
}

// What has been moved from still works, as a copy does.
TEST(StrategyHandle, IsNeverEmpty) {
  Strategy strategy = replicas(2);
  const Strategy other = std::move(strategy);
  EXPECT_EQ(strategy, other);  // NOLINT: the point
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f));
  const Variable same_v = std::move(v);
  EXPECT_EQ(v, same_v);  // NOLINT
  nn::Sequential model{nn::Dense(2, 3), nn::Dense(3, 1)};
  const nn::Sequential same_model = std::move(model);
  EXPECT_EQ(model.trainable_variables(), same_model.trainable_variables());  // NOLINT
  EXPECT_EQ(model(zeros({4, 2})).shape(), Shape({4, 1}));
  auto dataset = strategy.distribute_dataset(data::range(8).batch(4));
  const auto same_dataset = std::move(dataset);
  auto batches = dataset.iterator();  // NOLINT
  auto moved_to = std::move(batches);
  EXPECT_TRUE(moved_to.next());
  EXPECT_THAT([&] { batches.next(); }, throws<InvalidArgument>("moved from"));  // NOLINT
}

TEST(StrategyHandle, OneReplicaIsTheSameProgram) {
  const OneDeviceStrategy one;
  EXPECT_EQ(one.num_replicas_in_sync(), 1);
  const auto scope = one.scope();
  Variable v(Tensor(1.0f), {.aggregation = VariableAggregation::mean});
  const auto result = one.run([&] {
    v.assign_add(get_replica_context()->all_reduce(ReduceOp::sum, Tensor(2.0f)));
    return v.read();
  });
  EXPECT_EQ(one.reduce(ReduceOp::sum, result).item<float>(), 3);
  EXPECT_THAT([&] { one.run([&] { one.run([] {}); }); },
              throws<FailedPrecondition>("step function"));
}

}  // namespace
}  // namespace lockstep
