// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Each;
using ::testing::ElementsAre;

using enum VariableAggregation;

// merge_call with values, and what its function does with variables.
class Update : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, Update, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

using Assign = Tensor (Variable::*)(const Tensor&, SourceLocation);

TEST_P(Update, VAR13_InAReplicaConcernsItsComponentAlone) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  for (const auto& [assign, expected] : {std::pair<Assign, float>{&Variable::assign, 1},
                                         {&Variable::assign_add, 8},
                                         {&Variable::assign_sub, 2}}) {
    Variable v(Tensor(5.0F), {.aggregation = sum});  // which would add up what replicas assign
    strategy.run([&, assign = assign] {
      const auto changed = [&](Variable own, const Tensor& by) { return (own.*assign)(by, {}); };
      get_replica_context()->update(v, changed, Tensor(2.0F));
      get_replica_context()->update(v, changed, Tensor(1.0F));
    });
    EXPECT_THAT(items(v.local_values()), Each(expected));
  }
}

TEST_P(Update, OutsideReplicasVisitsEachComponent) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0F), {.aggregation = mean});
  const auto added = strategy.run([] { return Tensor(replica_id()); });
  const auto results = strategy.update(
      v,
      [&](Variable own, const Tensor& by, float factor) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_EQ(get_replica_context(), nullptr);
        return own.assign_add(by * factor);
      },
      added, 10.0F);
  EXPECT_THAT(items(strategy.local_results(results)), ElementsAre(1, 11, 21));
  EXPECT_THAT(items(v.local_values()), ElementsAre(1, 11, 21));
  strategy.update(v, [](Variable own) {
    update_values(std::array{own}, [](std::array<Tensor, 1>& value) { value[0] = value[0] * 2; });
  });
  EXPECT_THAT(items(v.local_values()), ElementsAre(2, 22, 42));
}

TEST_P(Update, OfWhatIsReadByReplicaReadsTheComponent) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0F),
             {.synchronization = VariableSynchronization::on_read, .aggregation = sum});
  strategy.run([&] { v.assign(Tensor(replica_id() + 1)); });
  strategy.update(v, [](Variable own) { own.assign(own.read() * 3); });
  EXPECT_THAT(items(v.local_values()), ElementsAre(3, 6));
  EXPECT_EQ(v.read().item<float>(), 9);
}

TEST_P(Update, MergeCallHandsOverEveryReplicasValues) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  Variable weight(Tensor(1.0F));
  int merges = 0;
  strategy.run([&] {
    const Tensor gradient(replica_id());
    const std::pair batch(vec({1, 2}), replica_index());
    const Tensor own = get_replica_context()->merge_call(
        [&](const PerReplica<Tensor>& gradients,
            const PerReplica<std::pair<Tensor, int>>& batches) {
          ++merges;
          EXPECT_EQ(batches.size(), 3U);
          for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(batches[r].second, static_cast<int>(r));
          const auto total = strategy.reduce_to(ReduceOp::sum, gradients, weight);
          EXPECT_EQ(total.kind(), ReplicaKind::mirrored);
          return strategy.update(
              weight, [](Variable v, const Tensor& by) { return v.assign_sub(by); }, total);
        },
        gradient, batch);
    EXPECT_EQ(own.item<float>(), -2);
    EXPECT_EQ(weight.read().item<float>(), -2);
    const int same = get_replica_context()->merge_call(
        [](const PerReplica<int>& ids) { return ids[2] * 7; }, replica_index());
    EXPECT_EQ(same, 14);
    get_replica_context()->merge_call([&](const PerReplica<int>&) { ++merges; }, 0);
  });
  EXPECT_EQ(merges, 2);
  EXPECT_EQ(get_replica_context(), nullptr);
}

TEST(UpdateWithoutAStrategy, IsAnOrdinaryCall) {
  Variable v(Tensor(5.0F));
  const Tensor added = get_replica_context()->merge_call(
      [&](const PerReplica<Tensor>& values) {
        EXPECT_EQ(values.size(), 1U);
        return values[0] + 1;
      },
      Tensor(2.0F));
  EXPECT_EQ(added.item<float>(), 3);
  get_replica_context()->update(
      v, [](Variable own, const Tensor& by) { own.assign_add(by); }, added);
  EXPECT_EQ(v.read().item<float>(), 8);
}

TEST_P(Update, ReducesManyValuesToTheirVariables) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const Variable a(Tensor(0.0F)), b(zeros({2}));
  const auto values = strategy.run([] { return std::pair(Tensor(replica_id()), vec({1, 2}) * 1); });
  std::vector<Tensor> first, second;
  for (const auto& [x, y] : values) {
    first.push_back(x);
    second.push_back(y);
  }
  const auto reduced = strategy.batch_reduce_to(
      ReduceOp::mean, {{PerReplica<Tensor>(first), a}, {PerReplica<Tensor>(second), b}});
  ASSERT_EQ(reduced.size(), 2U);
  EXPECT_THAT(items(strategy.local_results(reduced[0])), Each(0.5));
  EXPECT_THAT(strategy.local_results(reduced[1]), Each(holds({1, 2})));
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(reduced[0][r].device(), a.local_values()[r].device());
}

TEST_P(Update, SlotsGoWithTheirVariable) {
  const auto strategy = make(2);
  std::optional<Variable> weight;
  {
    const auto scope = strategy.scope();
    weight.emplace(vec({1, 2}));
  }
  {
    const auto beside = strategy.colocate_vars_with(*weight);
    EXPECT_EQ(Variable(Tensor(0.0F)).group(), weight->group());
  }
  EXPECT_FALSE(has_strategy());
}

TEST_P(Update, RefusesWhatIsNotTheirs) {
  const auto strategy = make(2);
  const MirroredStrategy other = make(2);
  const Variable outside(Tensor(1.0F));
  const auto nothing = [](const Variable&) {};
  EXPECT_THAT([&] { strategy.update(outside, nothing); },
              throws<FailedPrecondition>("[Strategy::update]", "scope"));
  EXPECT_THAT([&] { const auto beside = strategy.colocate_vars_with(outside); },
              throws<FailedPrecondition>("[Strategy::colocate_vars_with]", "scope"));
  EXPECT_THAT([&] { strategy.run([&] { get_replica_context()->update(outside, nothing); }); },
              throws<FailedPrecondition>("[ReplicaContext::update]", "scope"));
  std::optional<Variable> theirs;
  {
    const auto scope = other.scope();
    theirs.emplace(Tensor(1.0F));
  }
  EXPECT_THAT([&] { strategy.update(*theirs, nothing); },
              throws<FailedPrecondition>("[Strategy::update]", "another strategy"));
  EXPECT_THAT([&] { other.run([&] { other.update(*theirs, nothing); }); },
              throws<FailedPrecondition>("[Strategy::update]", "step function"));
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          get_replica_context()->merge_call(
              [](const PerReplica<int>&) { throw InvalidArgument("[merge] no", SourceLocation{}); },
              1);
        });
      },
      throws<InvalidArgument>("[merge] no"));
}

}  // namespace
}  // namespace lockstep
