// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include <barrier>
#include <thread>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_id;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Each;
using ::testing::ElementsAre;

using enum VariableAggregation;
constexpr auto on_read = VariableSynchronization::on_read;

// The matrix of tf_semantics.md section 6, in both thread modes.
class MirroredVariable : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, MirroredVariable, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(MirroredVariable, HasAnEqualComponentPerReplica) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}));
  const auto components = v.local_values();
  ASSERT_EQ(components.size(), 3u);
  for (int r = 0; r < 3; ++r) {
    EXPECT_THAT(components[static_cast<std::size_t>(r)], holds({1, 2}));
    EXPECT_EQ(components[static_cast<std::size_t>(r)].device().index, r);
  }
  EXPECT_NE(components[0].raw_data(), components[1].raw_data());
  EXPECT_EQ(v.group().get(), strategy.implementation().get());
  testing::require_equal_replicas(std::vector{v});
}

TEST_P(MirroredVariable, VAR01_MeanOfWhatReplicasAssign) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable a(Tensor(1.0f), {.aggregation = mean}), b(Tensor(1.0f), {.aggregation = mean}),
      c(Tensor(5.0f), {.aggregation = mean});
  const auto results = strategy.run([&] {
    const Tensor x = a.assign(Tensor(replica_id()));
    const Tensor y = b.assign_add(Tensor(replica_id()));
    return std::tuple(x, y, c.assign_sub(Tensor(replica_id())));
  });
  EXPECT_THAT(items(a.local_values()), ElementsAre(0.5, 0.5));
  EXPECT_THAT(items(b.local_values()), ElementsAre(1.5, 1.5));
  EXPECT_THAT(items(c.local_values()), ElementsAre(4.5, 4.5));
  for (const auto& [x, y, z] : results) {
    EXPECT_EQ(x.item<float>(), 0.5);
    EXPECT_EQ(y.item<float>(), 1.5);
    EXPECT_EQ(z.item<float>(), 4.5);
  }
}

TEST_P(MirroredVariable, SumOfWhatReplicasAssign) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  Variable v(Tensor(std::int64_t{100}), {.aggregation = sum});
  strategy.run([&] { v.assign_add(Tensor(std::int64_t{1} + testing::replica_index())); });
  EXPECT_THAT(items(v.local_values()), ElementsAre(106, 106, 106));
}

TEST_P(MirroredVariable, VAR02_WithoutAggregationEachReplicaAssignsItsOwn) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f));
  strategy.run([&] { v.assign(Tensor(5.0f)); });
  EXPECT_THAT(items(v.local_values()), ElementsAre(5, 5));
  strategy.run([&] { v.assign(Tensor(replica_id())); });
  EXPECT_THAT(items(v.local_values()), ElementsAre(0, 1));
  EXPECT_THAT([&] { testing::require_equal_replicas(std::vector{v}); },
              throws<InternalError>("replica 1"));
}

TEST_P(MirroredVariable, VAR04_TheFirstReplicasValueForAll) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(15.0f), {.aggregation = only_first_replica});
  const auto results = strategy.run([&] { return v.assign(Tensor(replica_id())); });
  EXPECT_THAT(items(v.local_values()), ElementsAre(0, 0));
  EXPECT_THAT(items(results), ElementsAre(0, 0));
}

TEST_P(MirroredVariable, TheFirstReplicasValueIsTakenAsItIs) {
  // Not by a sum with zeros, to which an infinity of another replica would add a NaN, and which
  // would turn a negative zero into a positive one.
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(vec({1, 1}), {.aggregation = only_first_replica});
  strategy.run([&] {
    const float other = std::numeric_limits<float>::infinity();
    v.assign(testing::replica_index() == 0 ? vec({-0.0f, 3.0f}) : vec({other, other}));
  });
  for (const Tensor& value : v.local_values()) {
    EXPECT_TRUE(std::signbit(value.to_vector<float>()[0]));
    EXPECT_EQ(value.to_vector<float>()[1], 3);
  }
}

TEST_P(MirroredVariable, RUN08_ReplicasMakeTheSameVariablesInTheSameOrder) {
  const auto strategy = make(2);
  const auto named = [&](const char* first, const char* second) {
    strategy.run([&] { Variable(Tensor(1.0f), {.name = replica_id() == 0 ? first : second}); });
  };
  EXPECT_THAT([&] { named("foo_0", "bar_1"); },
              throws<FailedPrecondition>("[Variable]", "mismatching name", "foo_0", "bar_1"));
  EXPECT_THAT([&] { named("foo", "foot"); }, throws<FailedPrecondition>("mismatching name"));
  EXPECT_NO_THROW(named("foo", "foo_1"));
  EXPECT_THAT([&] { strategy.run([] { Variable(zeros({1 + testing::replica_index()})); }); },
              throws<InvalidArgument>("[Variable]", "different values"));
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          Variable(Tensor(1.0f), {.compute_dtype = replica_id() == 0 ? DType::bf16 : DType::f16});
        });
      },
      throws<InvalidArgument>("[Variable]", "different options"));
}

TEST_P(MirroredVariable, MadeInAStepIsOneForAllReplicas) {
  const auto strategy = make(3);
  std::vector<std::optional<Variable>> made(3);
  strategy.run([&] {
    Variable v(Tensor(replica_id() + 5), {.name = "v", .aggregation = sum});
    EXPECT_EQ(v.read().item<float>(), 5) << "replica 0's";
    v.assign_add(Tensor(replica_id()));
    made[static_cast<std::size_t>(testing::replica_index())] = v;
  });
  EXPECT_EQ(*made[0], *made[1]);
  EXPECT_EQ(*made[0], *made[2]);
  EXPECT_EQ(made[0]->group(), strategy.implementation());
  EXPECT_THAT(items(made[0]->local_values()), ElementsAre(8, 8, 8));
  EXPECT_EQ(made[0]->local_values()[2].device().index, 2);
  EXPECT_THROW(strategy.run([] {
    if (replica_id() == 0) Variable(Tensor(1.0f));
  }),
               PeerError);
}

TEST_P(MirroredVariable, VAR07_OnReadIsCombinedWhenReadOutside) {
  const auto strategy = make(4);
  const auto scope = strategy.scope();
  const auto made = [](VariableAggregation aggregation) {
    return Variable(Tensor(0.0f), {.synchronization = on_read, .aggregation = aggregation});
  };
  const Variable total = made(sum), average = made(mean), first = made(only_first_replica),
                 own = made(none);
  strategy.run([&] {
    for (Variable v : {total, average, first, own}) {
      v.assign(Tensor(replica_id()));
      EXPECT_EQ(v.read().item<float>(), replica_id());
    }
  });
  EXPECT_EQ(total.read().item<float>(), 6);
  EXPECT_EQ(average.read().item<float>(), 1.5);
  EXPECT_EQ(first.read().item<float>(), 0);
  EXPECT_THAT([&] { own.read(); }, throws<InvalidArgument>("[Variable::read]", "none"));
  EXPECT_THAT(items(own.local_values()), ElementsAre(0, 1, 2, 3));
}

TEST_P(MirroredVariable, VAR08_AssigningATotalOutsideSharesItOut) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0f), {.name = "total", .synchronization = on_read, .aggregation = sum});
  v.assign(Tensor(2.0f));
  EXPECT_THAT(items(v.local_values()), ElementsAre(1, 1));
  EXPECT_EQ(v.read().item<float>(), 2);
  EXPECT_THAT([&] { v.assign_add(Tensor(1.0f)); },
              throws<InvalidArgument>("[Variable::assign_add]", "total"));
  EXPECT_THAT([&] { v.assign_sub(Tensor(1.0f)); },
              throws<InvalidArgument>("[Variable::assign_sub]"));
  EXPECT_THAT(items(v.local_values()), ElementsAre(1, 1));
}

TEST_P(MirroredVariable, AssigningAnIntegerTotalOutsideKeepsItWhole) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(0), {.name = "count", .synchronization = on_read, .aggregation = sum});
  v.assign(Tensor(3));
  EXPECT_EQ(v.read().item<int>(), 3);
  strategy.run([&] { Variable(v).assign_add(Tensor(2)); });
  EXPECT_EQ(v.read().item<int>(), 7);
  v.assign(Tensor(0));
  EXPECT_EQ(v.read().item<int>(), 0);
}

TEST_P(MirroredVariable, OnReadOfOtherAggregationsTakesAssignmentsOutsideAsTheyAre) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  for (const auto aggregation : {none, mean, only_first_replica}) {
    Variable v(Tensor(0.0f), {.synchronization = on_read, .aggregation = aggregation});
    EXPECT_FALSE(v.assign(Tensor(3.0f)).defined());
    EXPECT_FALSE(v.assign_add(Tensor(1.0f)).defined());
    EXPECT_THAT(items(v.local_values()), ElementsAre(4, 4));
  }
}

TEST_P(MirroredVariable, AssigningOutsideReachesEveryComponent) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  for (const auto aggregation : {none, sum, mean, only_first_replica}) {
    Variable v(Tensor(0.0f), {.aggregation = aggregation});
    EXPECT_EQ(v.assign(Tensor(3.0f)).item<float>(), 3);
    EXPECT_EQ(v.assign_add(Tensor(2.0f)).item<float>(), 5);
    EXPECT_EQ(v.assign_sub(Tensor(1.0f)).item<float>(), 4);
    EXPECT_THAT(items(v.local_values()), Each(4));
  }
}

TEST_P(MirroredVariable, AnAssignmentOutsideIsSeenByReplicasAndTheOtherWayRound) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f));
  for (int i = 0; i < 50; ++i) {
    v.assign(Tensor(static_cast<float>(i)));
    strategy.run([&] {
      EXPECT_EQ(v.read().item<float>(), static_cast<float>(i));
      v.assign_add(Tensor(0.5f));
    });
    EXPECT_EQ(v.read().item<float>(), static_cast<float>(i) + 0.5f);
  }
}

TEST_P(MirroredVariable, InMergeCallAssignmentsReachEveryComponent) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f));
  strategy.run([&] {
    get_replica_context()->merge_call([&] {
      EXPECT_EQ(v.read().item<float>(), 1);
      v.assign(Tensor(7.0f));
    });
    EXPECT_EQ(v.read().item<float>(), 7);
  });
}

TEST_P(MirroredVariable, ZerosLikeMayBeMadeInAReplica) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const Variable w(vec({1, 2}));
  strategy.run([&] {
    const Variable slot = Variable::zeros_like(w, "slot");
    EXPECT_EQ(slot.group(), w.group());
    EXPECT_THAT(slot.read(), holds({0, 0}));
  });
  EXPECT_EQ(Variable::zeros_like(w, "slot").local_values().size(), 2u);
}

TEST_P(MirroredVariable, SetLocalValueTouchesOneComponent) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(vec({1, 2}));
  v.set_local_value(1, vec({3, 4}));
  EXPECT_THAT(v.local_values()[0], holds({1, 2}));
  EXPECT_THAT(v.local_values()[1], holds({3, 4}));
  EXPECT_THAT([&] { v.set_local_value(0, vec({1})); }, throws<InvalidArgument>("f32[2]"));
}

TEST_P(MirroredVariable, MadeOutsideAnyScopeIsSharedByTheReplicas) {
  const auto strategy = make(2);
  Variable plain(Tensor(1.0f));
  strategy.run([&] {
    EXPECT_GE(plain.read().item<float>(), 1);
    plain.assign_add(Tensor(1.0f));  // each replica does
  });
  EXPECT_EQ(plain.read().item<float>(), 3);
}

TEST_P(MirroredVariable, StrategiesDoNotMix) {
  const auto mine = make(2), other = make(2);
  Variable v = [&] {
    const auto scope = mine.scope();
    return Variable(Tensor(1.0f), {.name = "v"});
  }();
  EXPECT_THAT([&] { other.run([&] { v.read(); }); },
              throws<FailedPrecondition>("[Variable::read]", "'v'", "mix"));
  EXPECT_THAT([&] { other.run([&] { v.assign(Tensor(2.0f)); }); },
              throws<FailedPrecondition>("[Variable::assign]", "'v'"));
  const auto scope = other.scope();
  EXPECT_THAT([&] { v.read(); }, throws<FailedPrecondition>("'v'"));
  EXPECT_THAT([&] { v.assign_add(Tensor(2.0f)); }, throws<FailedPrecondition>("'v'"));
}

TEST_P(MirroredVariable, AThreadThatIsNoReplicaIsRefusedDuringARun) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f), {.name = "v"});
  const auto refused = [&] {
    EXPECT_THAT([&] { v.read(); }, throws<FailedPrecondition>("[Variable::read]", "'v'", "run"));
    EXPECT_THAT([&] { v.assign(Tensor(3.0f)); }, throws<FailedPrecondition>("[Variable::assign]"));
    EXPECT_THAT([&] { v.local_values(); }, throws<FailedPrecondition>("run"));
  };
  strategy.run([&] { std::thread(refused).join(); });
  std::thread([&] { EXPECT_EQ(v.read().item<float>(), 1); }).join();
}

TEST_P(MirroredVariable, AThreadWithItsOwnScopeIsRefusedDuringARunToo) {
  const auto strategy = make(2);
  Variable v = [&] {
    const auto scope = strategy.scope();
    return Variable(Tensor(1.0f), {.name = "v"});
  }();
  strategy.run([&] {
    std::thread([&] {
      const auto scope = strategy.scope();
      EXPECT_THAT([&] { v.read(); }, throws<FailedPrecondition>("[Variable::read]", "'v'"));
      EXPECT_THAT([&] { v.assign(Tensor(3.0f)); }, throws<FailedPrecondition>("'v'"));
    }).join();
  });
}

}  // namespace
}  // namespace lockstep
