// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

TEST(Reduce, RED01_SumsReplicaIds) {
  const auto strategy = replicas(3);
  const auto ids = strategy.run([] { return get_replica_context()->replica_id_in_sync_group(); });
  const Tensor total = strategy.reduce(ReduceOp::sum, ids);
  EXPECT_EQ(total.dtype(), DType::i32);
  EXPECT_EQ(total.item<int>(), 3);
}

TEST(Reduce, AValueThatNoReplicaReturnedHasAMean) {
  const auto strategy = replicas(2);
  const std::pair value(vec({1, 2}), 3);
  const auto [same, number] = strategy.reduce(ReduceOp::mean, value);
  EXPECT_THAT(same, holds({1, 2}));
  EXPECT_EQ(number, 3);
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, Tensor(1.0f)); },
              throws<InvalidArgument>("[Strategy::reduce]", "no replica returned"));
  EXPECT_EQ(replicas(1).reduce(ReduceOp::sum, 2.5), 2.5);
  strategy.run([&] {
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::mean, 1.0); },
                throws<FailedPrecondition>("[Strategy::reduce]", "step function"));
  });
}

TEST(Reduce, RED02_KeepsTheStructure) {
  const auto strategy = replicas(2);
  const auto results = strategy.run([](float x) { return std::tuple(x + 1, Tensor(x - 1)); }, 3.0f);
  const auto [plus, minus] = strategy.reduce(ReduceOp::sum, results);
  static_assert(std::is_same_v<decltype(plus), const float>);
  EXPECT_EQ(plus, 8);
  EXPECT_EQ(minus.item<float>(), 4);
}

TEST(Reduce, RED04_TheMeanOverAnAxisIsOverAllRows) {
  const auto strategy = replicas(2);
  const PerReplica<Tensor> rows({vec({5, 6}), vec({7})});
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, rows, 0).item<float>(), 6);
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, rows, 0).item<float>(), 18);
}

TEST(Reduce, RED05_EqualRowsOnEveryReplica) {
  for (const int count : {1, 2, 4}) {
    const auto strategy = replicas(count);
    const auto results = strategy.run([] { return vec({1, 2}); });
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, results, 0).item<float>(), 1.5);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, results, 0).item<float>(), 3.0f * count);
  }
}

TEST(Reduce, RED07_TheMeanOfIntegersIsADouble) {
  const auto strategy = replicas(2);
  const auto ids = strategy.run([] { return get_replica_context()->replica_id_in_sync_group(); });
  const Tensor average = strategy.reduce(ReduceOp::mean, ids);
  EXPECT_EQ(average.dtype(), DType::f64);
  EXPECT_EQ(average.item<double>(), 0.5);
}

TEST(Reduce, RED10_AMirroredVariableHasAMeanAndNoSum) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  const Variable v(Tensor(3.0f), {.name = "v"});
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, v).item<float>(), 3);
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, v); },
              throws<InvalidArgument>("[Strategy::reduce]", "'v'", "mean"));
  const auto read = strategy.run([&] { return v.read(); });
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, read).item<float>(), 3);
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, read); },
              throws<InvalidArgument>("[Strategy::reduce]", "mirrored"));
}

TEST(Reduce, AnOnReadVariableIsCombinedOverItsComponents) {
  const auto strategy = replicas(3);
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0f), {.synchronization = VariableSynchronization::on_read});
  strategy.run([&] { v.assign(Tensor(replica_id())); });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, v).item<float>(), 3);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, v).item<float>(), 1);
}

TEST(Reduce, AUniformValueHasAMeanAndNoSum) {
  const auto strategy = replicas(2);
  const Tensor shared = vec({1, 2});
  const auto results = strategy.run([&] { return shared; });
  EXPECT_THAT(strategy.reduce(ReduceOp::mean, results), holds({1, 2}));
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, results); },
              throws<InvalidArgument>("[Strategy::reduce]", "same object", "mean"));
}

TEST(Reduce, TheMeanOverAnAxisOfIntegers) {
  const auto strategy = replicas(2);
  const PerReplica<Tensor> rows({vec<std::int32_t>({1, 2}), vec<std::int32_t>({4})});
  const Tensor average = strategy.reduce(ReduceOp::mean, rows, 0);
  EXPECT_EQ(average.dtype(), DType::f64);
  EXPECT_DOUBLE_EQ(average.item<double>(), 7.0 / 3);
}

TEST(Reduce, NegativeAndInnerAxes) {
  const auto strategy = replicas(2);
  const PerReplica<Tensor> values(
      {Tensor(Shape{1, 2}, {1.0f, 2.0f}), Tensor(Shape{1, 3}, {3.0f, 4.0f, 5.0f})});
  EXPECT_THAT(strategy.reduce(ReduceOp::sum, values, -1), holds({15}));
  EXPECT_THAT(strategy.reduce(ReduceOp::mean, values, 1), holds({3}));
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, values, 2); },
              throws<InvalidArgument>("[Strategy::reduce]", "axis 2", "[1, 2]"));
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, values, -3); },
              throws<InvalidArgument>("axis -3"));
}

TEST(Reduce, EmptyRowsWeighNothing) {
  const auto strategy = replicas(2);
  const PerReplica<Tensor> one_empty({vec({4, 6}), zeros({0})});
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, one_empty, 0).item<float>(), 5);
  const PerReplica<Tensor> all_empty({zeros({0}), zeros({0})});
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, all_empty, 0).item<float>(), 0);
  EXPECT_TRUE(std::isnan(strategy.reduce(ReduceOp::mean, all_empty, 0).item<float>()));
}

TEST(Reduce, UnequalShapesNeedAnAxis) {
  const auto strategy = replicas(2);
  const PerReplica<std::pair<Tensor, Tensor>> values(
      {{Tensor(1.0f), vec({1, 2})}, {Tensor(2.0f), vec({3})}});
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, values); },
              throws<InvalidArgument>("[Strategy::reduce]", "leaf 1", "f32[2]", "f32[1]", "axis"));
}

TEST(Reduce, UnequalStructuresNamePathAndSizes) {
  const auto strategy = replicas(2);
  const auto results = strategy.run([] {
    std::map<std::string, std::vector<Tensor>> losses;
    losses["aux"].resize(static_cast<std::size_t>(1 + replica_index()), Tensor(1.0f));
    return losses;
  });
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, results); },
              throws<InvalidArgument>("[Strategy::reduce]", "replica 0", "1", "replica 1", "2",
                                      "[aux][1]", "nothing"));
}

TEST(Reduce, StructuresOfEqualSizeButOtherNamesDiffer) {
  const auto strategy = replicas(2);
  const auto results = strategy.run([] {
    return std::map<std::string, Tensor>{{replica_index() ? "b" : "a", Tensor(1.0f)}};
  });
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, results); },
              throws<InvalidArgument>("[Strategy::reduce]", "[a]", "[b]"));
}

TEST(Reduce, AValueOfAnotherNumberOfReplicasIsRefused) {
  const auto strategy = replicas(2);
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, PerReplica<Tensor>({Tensor(1.0f)})); },
              throws<InvalidArgument>("[Strategy::reduce]", "2", "1"));
}

TEST(Reduce, SumsFollowTheTreeOverReplicas) {
  // ((a + b) + (c + d)) in float: b and d vanish beside a and c, whereas from left to right
  // ((a + b) + c) + d would leave d.
  const auto strategy = replicas(4);
  const PerReplica<Tensor> values({Tensor(1e8f), Tensor(3.0f), Tensor(-1e8f), Tensor(3.0f)});
  const float expected = (1e8f + 3.0f) + (-1e8f + 3.0f);
  ASSERT_NE(expected, ((1e8f + 3.0f) + -1e8f) + 3.0f);
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, values).item<float>(), expected);
  const auto in_step = strategy.run(
      [](const Tensor& own) { return get_replica_context()->all_reduce(ReduceOp::sum, own); },
      values);
  for (const Tensor& total : in_step) EXPECT_EQ(total.item<float>(), expected);
}

TEST(Gather, JoinsTheComponentsInReplicaOrder) {
  const auto strategy = replicas(3);
  const PerReplica<Tensor> rows({vec({1, 2}), zeros({0}), vec({3})});
  EXPECT_THAT(strategy.gather(rows), holds({1, 2, 3}));
  EXPECT_THAT(
      [&] {
        strategy.gather(PerReplica<Tensor>({vec({1}), Tensor(1.0f), vec({1})}));
      },
      throws<InvalidArgument>());
}

}  // namespace
}  // namespace lockstep
