// SPDX-License-Identifier: Apache-2.0
// Values that the caller makes for each replica, and looks at for each.
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <string>
#include <vector>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;

TEST(DistributeValues, AsksForEachReplicaInOrder) {
  std::vector<int> asked;
  const auto values = replicas(3).distribute_values_from_function([&](const ValueContext& context) {
    EXPECT_EQ(context.num_replicas_in_sync, 3);
    asked.push_back(context.replica_id_in_sync_group);
    return 10 * context.replica_id_in_sync_group;
  });
  EXPECT_THAT(asked, ElementsAre(0, 1, 2));
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), ElementsAre(0, 10, 20));
  EXPECT_EQ(values.kind(), ReplicaKind::per_replica);
  EXPECT_FALSE(values.rows());
}

struct Rollout {
  Tensor observations;
  double reward = 0;
};

TEST(DistributeValues, GoIntoRunWithShapesOfTheirOwn) {
  const MirroredStrategy strategy = replicas(2);
  const auto rollouts =
      strategy.distribute_values_from_function([calls = 0](const ValueContext& context) mutable {
        ++calls;
        const std::int64_t steps = context.replica_id_in_sync_group + 2;
        return Rollout{full({steps, 3}, calls), 0.5 * calls};
      });
  const auto sums = strategy.run(
      [](const Rollout& rollout) { return sum(rollout.observations) * rollout.reward; }, rollouts);
  EXPECT_THAT(items(sums), ElementsAre(2 * 3 * 1 * 0.5, 3 * 3 * 2 * 1.0));
  const auto rows =
      strategy.run([](const Rollout& rollout) { return rollout.observations; }, rollouts);
  EXPECT_THAT(strategy.reduce(ReduceOp::sum, rows, 0), holds({2 + 6, 2 + 6, 2 + 6}));
}

TEST(DistributeValues, AreEachReplicasOwnThoughOneObject) {
  const MirroredStrategy strategy = replicas(3);
  const Tensor one(1.5f);
  const auto values =
      strategy.distribute_values_from_function([&](const ValueContext&) { return one; });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, values).item<float>(), 4.5f);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, values).item<float>(), 1.5f);
}

TEST(DistributeValues, AreMadeOutsideStepsOfTheSameStrategy) {
  const MirroredStrategy strategy = replicas(2), other = replicas(2);
  const auto ask = [&] {
    return strategy.distribute_values_from_function([](const ValueContext&) { return 1; });
  };
  EXPECT_THAT([&] { strategy.run([&] { ask(); }); },
              throws<FailedPrecondition>("[Strategy::distribute_values_from_function]"));
  const auto scope = other.scope();
  EXPECT_THAT(ask, throws<FailedPrecondition>("do not mix strategies"));
}

TEST(DistributeValues, AnErrorOfTheFunctionComesOut) {
  const auto fail = [](const ValueContext& context) -> int {
    throw std::runtime_error("no environment " + std::to_string(context.replica_id_in_sync_group));
  };
  EXPECT_THAT([&] { replicas(2).distribute_values_from_function(fail); },
              throws<std::runtime_error>("no environment 0"));
}

TEST(DistributeValues, OneReplicaHasOneValue) {
  const OneDeviceStrategy strategy;
  const auto values = strategy.distribute_values_from_function(
      [](const ValueContext& context) { return Tensor(context.num_replicas_in_sync); });
  EXPECT_THAT(items<int>(values), ElementsAre(1));
}

TEST(LocalResults, AreTheValuesOfEachReplica) {
  const MirroredStrategy strategy = replicas(2);
  const auto both = strategy.run([] { return Rollout{vec({replica_id()}), 2.0 * replica_id()}; });
  const std::vector<Rollout> results = strategy.local_results(both);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(results[1].observations, holds({1}));
  EXPECT_EQ(results[1].reward, 2);
}

TEST(LocalResults, OfAVariableAreItsComponents) {
  const MirroredStrategy strategy = replicas(3);
  const auto scope = strategy.scope();
  const Variable mirrored(Tensor(4.0f));
  Variable sum(Tensor(0.0f), {.trainable = false,
                              .synchronization = VariableSynchronization::on_read,
                              .aggregation = VariableAggregation::sum});
  strategy.run([&] { sum.assign(Tensor(replica_id())); });
  EXPECT_THAT(items(strategy.local_results(mirrored)), ElementsAre(4, 4, 4));
  EXPECT_THAT(items(strategy.local_results(sum)), ElementsAre(0, 1, 2));
}

TEST(LocalResults, OfAnotherValueIsThatValue) {
  const MirroredStrategy strategy = replicas(3);
  EXPECT_THAT(items(strategy.local_results(Tensor(5.0f))), ElementsAre(5));
  EXPECT_THAT(strategy.local_results(std::pair(1, 2.5)), ElementsAre(std::pair(1, 2.5)));
}

TEST(TPUStrategy, TakesValuesFromAFunctionAndShowsThemOnTheHost) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  const auto scope = strategy.scope();
  const Variable scale(Tensor(3.0f));
  for (int round = 1; round <= 2; ++round) {
    const auto values = strategy.distribute_values_from_function([&](const ValueContext& context) {
      return full({2}, round * (context.replica_id_in_sync_group + 1));
    });
    const auto scaled = strategy.run([&](const Tensor& own) { return own * scale; }, values);
    const std::vector<Tensor> results = strategy.local_results(scaled);
    ASSERT_EQ(results.size(), 2u);
    for (const Tensor& result : results) EXPECT_TRUE(result.device().is_host());
    EXPECT_THAT(results[0].data<float>(), ElementsAre(3 * round, 3 * round));
    EXPECT_THAT(results[1].data<float>(), ElementsAre(6 * round, 6 * round));
  }
  EXPECT_THAT(items(strategy.local_results(scale)), ElementsAre(3, 3));
}

}  // namespace
}  // namespace lockstep
