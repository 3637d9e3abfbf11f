// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include <limits>
#include <thread>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;

// Variables without a strategy: one component, an ordinary program.

TEST(PlainVariable, HoldsWhatItIsAssigned) {
  Variable v(vec({1, 2}), {.name = "v"});
  EXPECT_EQ(v.name(), "v");
  EXPECT_EQ(v.dtype(), DType::f32);
  EXPECT_EQ(v.shape(), Shape({2}));
  EXPECT_EQ(v.num_elements(), 2);
  EXPECT_TRUE(v.trainable());
  EXPECT_EQ(v.synchronization(), VariableSynchronization::on_write);
  EXPECT_EQ(v.aggregation(), VariableAggregation::none);
  EXPECT_EQ(v.group(), nullptr);
  EXPECT_THAT(v.assign(vec({3, 4})), holds({3, 4}));
  EXPECT_THAT(v.assign_add(vec({1, 1})), holds({4, 5}));
  EXPECT_THAT(v.assign_sub(vec({2, 0})), holds({2, 5}));
  EXPECT_THAT(v.read(), holds({2, 5}));
  EXPECT_EQ(v.local_values().size(), 1u);
}

TEST(PlainVariable, ReadsWhereverATensorIsExpected) {
  const Variable v(vec({1, 2}));
  EXPECT_THAT(v * 2 + v, holds({3, 6}));
  EXPECT_THAT(square(v), holds({1, 4}));
}

TEST(PlainVariable, KeepsItsKeyAndEqualityThroughAssignments) {
  Variable v(Tensor(1.0f));
  const Variable same = v, other(Tensor(1.0f));
  v.assign(Tensor(2.0f));
  EXPECT_EQ(v.read().key(), v.key());
  EXPECT_TRUE(v.read().trainable());
  EXPECT_EQ(same, v);
  EXPECT_EQ(same.read().item<float>(), 2);
  EXPECT_FALSE(other == v);
}

TEST(PlainVariable, OwnsItsValue) {
  // Neither the initial value nor an assigned one is a window into the variable.
  const Tensor initial = vec({1, 2}), assigned = vec({3, 4});
  Variable v(initial);
  EXPECT_NE(v.read().raw_data(), initial.raw_data());
  v.assign(assigned);
  EXPECT_NE(v.read().raw_data(), assigned.raw_data());
  v.assign_add(vec({1, 1}));
  EXPECT_THAT(assigned, holds({3, 4}));
  EXPECT_THAT(initial, holds({1, 2}));
}

TEST(PlainVariable, AReadTensorKeepsItsValue) {
  Variable v(vec({1, 2}));
  const Tensor before = v.read();
  v.assign_add(vec({1, 1}));
  v.assign(vec({9, 9}));
  EXPECT_THAT(before, holds({1, 2}));
}

TEST(PlainVariable, IntegersAndFixedOnesAreNotTrainable) {
  EXPECT_FALSE(Variable(Tensor(std::int64_t{3})).trainable());
  EXPECT_FALSE(Variable(Tensor(3.0f), {.trainable = false}).trainable());
  EXPECT_FALSE(
      Variable(Tensor(3.0f), {.synchronization = VariableSynchronization::on_read}).trainable());
}

TEST(PlainVariable, RefusesWhatDoesNotFit) {
  Variable v(vec({1, 2}), {.name = "kernel"});
  EXPECT_THAT(
      [&] {
        v.assign(vec({1, 2, 3}));
      },
      throws<InvalidArgument>("[Variable::assign]", "kernel", "f32[2]", "f32[3]"));
  EXPECT_THAT(
      [&] {
        v.assign_add(vec<double>({1, 2}));
      },
      throws<InvalidArgument>("[Variable::assign_add]", "kernel", "f64"));
  EXPECT_THAT([&] { v.assign_sub(Tensor()); }, throws<InvalidArgument>("[Variable::assign_sub]"));
  EXPECT_THAT(v.read(), holds({1, 2}));
}

TEST(PlainVariable, OnReadWithoutAStrategyIsOrdinary) {
  for (const auto aggregation :
       {VariableAggregation::none, VariableAggregation::sum, VariableAggregation::mean,
        VariableAggregation::only_first_replica}) {
    Variable v(Tensor(3.0f),
               {.synchronization = VariableSynchronization::on_read, .aggregation = aggregation});
    EXPECT_EQ(v.read().item<float>(), 3);
    v.assign(Tensor(4.0f));
    v.assign_add(Tensor(2.0f));
    EXPECT_EQ(v.read().item<float>(), 6);
  }
}

TEST(PlainVariable, ZerosLikeIsASlot) {
  const Variable w(vec({1, 2}), {.name = "w"});
  const Variable slot = Variable::zeros_like(w, "w/momentum");
  EXPECT_EQ(slot.name(), "w/momentum");
  EXPECT_THAT(slot.read(), holds({0, 0}));
  EXPECT_FALSE(slot.trainable());
  EXPECT_NE(slot.key(), w.key());
}

TEST(PlainVariable, MayBeReadAndAssignedByManyThreads) {
  Variable v(zeros({64}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        v.assign_add(ones({64}));
        const auto values = v.read().to_vector<float>();
        EXPECT_EQ(values.front(), values.back());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(v.read().to_vector<float>().front(), 1000);
}

TEST(VariableCreation, VAR10_RefusesWhatHasNoMeaning) {
  EXPECT_THAT([] { Variable(Tensor(1.0f), {.synchronization = VariableSynchronization::none}); },
              throws<InvalidArgument>("[Variable]", "synchronization"));
  EXPECT_THAT([] { Variable(Tensor(1), {.aggregation = VariableAggregation::mean}); },
              throws<InvalidArgument>("[Variable]", "mean", "i32"));
  // Enumerators that do not exist, as a cast from a configuration file may make them.
  EXPECT_THAT(
      [] { Variable(Tensor(1.0f), {.synchronization = static_cast<VariableSynchronization>(9)}); },
      throws<InvalidArgument>("[Variable]", "synchronization"));
  EXPECT_THAT([] { Variable(Tensor(1.0f), {.aggregation = static_cast<VariableAggregation>(9)}); },
              throws<InvalidArgument>("[Variable]", "aggregation"));
  EXPECT_THAT([] { Variable{Tensor()}; }, throws<InvalidArgument>("[Variable]", "initial value"));
}

}  // namespace
}  // namespace lockstep
