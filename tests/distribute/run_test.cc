// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>

#include <thread>

#include "support/errors.h"
#include "support/process.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::num_threads;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::ElementsAre;

class Run : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  const MirroredStrategy strategy = replicas(2, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Modes, Run, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Run, RUN01_ResultsOfOneStepAreArgumentsOfTheNext) {
  struct Both {
    Tensor a, b;
  };
  const auto x = strategy.run([] { return Tensor(replica_id() + 1); });
  const auto both = strategy.run([](const Tensor& own) { return Both{own * 2, own * own}; }, x);
  const auto sums =
      strategy.run([](const Both& own) { return Tensor(own.a + own.b * 2 + 2); }, both);
  EXPECT_THAT(items(x), ElementsAre(1, 2));
  EXPECT_EQ(both[0].a.item<float>(), 2);
  EXPECT_EQ(both[1].a.item<float>(), 4);
  EXPECT_EQ(both[0].b.item<float>(), 1);
  EXPECT_EQ(both[1].b.item<float>(), 4);
  EXPECT_THAT(items(sums), ElementsAre(6, 14));
}

TEST_P(Run, RUN02_EachReplicasStructureIsWhole) {
  const auto results = strategy.run([] {
    return std::map<std::string, float>{{"a", replica_id() + 1}, {"b", replica_id() + 2}};
  });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], (std::map<std::string, float>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(results[1], (std::map<std::string, float>{{"a", 2}, {"b", 3}}));
}

TEST_P(Run, PlainArgumentsReachEveryReplicaAsTheyAre) {
  const Tensor shared = vec({1, 2});
  const PerReplica<int> own({10, 20});
  const auto results = strategy.run(
      [&](const Tensor& x, int number, const std::string& text) {
        EXPECT_EQ(x.raw_data(), shared.raw_data());
        return number + static_cast<int>(text.size());
      },
      shared, own, std::string("abc"));
  EXPECT_THAT(std::vector<int>(results.begin(), results.end()), ElementsAre(13, 23));
}

TEST_P(Run, AnArgumentOfTooFewReplicasIsRefused) {
  EXPECT_THAT([&] { strategy.run([](int) {}, PerReplica<int>({10})); },
              throws<InvalidArgument>("[Strategy::run]", "2 components", "got 1"));
}

TEST_P(Run, RowsOfTheBatchAreKnownInTheStep) {
  const PerReplica<Tensor> batch({vec({1, 2}), vec({3})}, ReplicaKind::per_replica,
                                 BatchRows{{2, 1}, 3});
  strategy.run(
      [](const Tensor& x) {
        const auto rows = get_replica_context()->batch_rows();
        ASSERT_TRUE(rows);
        EXPECT_EQ(rows->local, x.dim(0));
        EXPECT_EQ(rows->global, 3);
      },
      batch);
  strategy.run([] { EXPECT_FALSE(get_replica_context()->batch_rows()); });
}

TEST_P(Run, RUN04_UnequalMergeCallsNameTheReplicaThatWillNotCome) {
  const int threads = num_threads();
  const auto step = [] {
    const auto nothing = [] {};
    get_replica_context()->merge_call(nothing);
    if (replica_index() == 0) get_replica_context()->merge_call(nothing);
  };
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_THAT([&] { strategy.run(step); }, throws<PeerError>("rank 1", "merge_call"));
  EXPECT_EQ(num_threads(), threads);
  strategy.run([] { get_replica_context()->merge_call([] {}); });
}

TEST_P(Run, RUN05_AnExceptionOfAReplicaComesOut) {
  const testing::QuietLog quiet;
  struct Custom {
    int value;
  };
  const auto step = [](int thrower) {
    if (replica_index() == thrower) throw Custom{42};
    get_replica_context()->merge_call([] {});
  };
  for (const int thrower : {0, 1}) {
    try {
      strategy.run(step, thrower);
      ADD_FAILURE() << "nothing thrown";
    } catch (const Custom& custom) {
      EXPECT_EQ(custom.value, 42);
    }
  }
}

TEST_P(Run, RUN05_AnExceptionOfAMergeFunctionComesOut) {
  const testing::QuietLog quiet;
  const auto error = caught<std::runtime_error>([&] {
    strategy.run([] {
      get_replica_context()->merge_call([] { throw std::runtime_error("in merge"); });
      ADD_FAILURE() << "a replica went on";
    });
  });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "in merge");
}

TEST_P(Run, ALockstepErrorSaysWhoseItIs) {
  for (const int thrower : {0, 1}) {
    const auto error = caught<InvalidArgument>([&] {
      strategy.run([&] {
        if (replica_index() == thrower) add(vec({1, 2}), vec({1, 2, 3}));
        get_replica_context()->merge_call([] {});
      });
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->context().replica, thrower);
    EXPECT_THAT(error->what(), ::testing::HasSubstr("replica " + std::to_string(thrower)));
  }
}

TEST_P(Run, MasksTheCallersRecorderAndPlacement) {
  struct Everything final : OpRecorder {
    bool wants(const Tensor&) const override { return true; }
    void record(const char*, std::span<const Tensor* const>, std::span<const Tensor>,
                GradientRule) override {
      ADD_FAILURE() << "recorded";
    }
  } recorder;
  const RecorderScope scope(&recorder);
  strategy.run([] {
    EXPECT_EQ(current_recorder(), nullptr);
    EXPECT_EQ((vec({1}) + 1).item<float>(), 2);
  });
  EXPECT_EQ(current_recorder(), &recorder);
}

TEST_P(Run, ServesCallersOneAfterTheOther) {
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0f));
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        strategy.run(
            [&] { v.assign_add(get_replica_context()->all_reduce(ReduceOp::mean, Tensor(1.0f))); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(items(v.local_values()), ElementsAre(150, 150));
}

// Kinds: how the results of the replicas relate.

TEST_P(Run, ResultsThatDifferArePerReplica) {
  EXPECT_EQ(strategy.run([] { return Tensor(1.0f); }).kind(), ReplicaKind::per_replica);
  EXPECT_EQ(strategy.run([] { return 1.0; }).kind(), ReplicaKind::per_replica);
  EXPECT_EQ(strategy.run([] { return std::vector<Tensor>(); }).kind(), ReplicaKind::per_replica);
}

TEST_P(Run, OneObjectReturnedByAllIsUniform) {
  const Tensor shared = vec({1, 2});
  EXPECT_EQ(strategy.run([&] { return shared; }).kind(), ReplicaKind::uniform);
  EXPECT_EQ(strategy.run([&] { return std::pair(shared, shared); }).kind(), ReplicaKind::uniform);
  EXPECT_EQ(strategy.run([&] { return std::pair(shared, Tensor(1.0f)); }).kind(),
            ReplicaKind::per_replica);
}

TEST_P(Run, AMirroredVariablesValueIsMirrored) {
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}));
  EXPECT_EQ(strategy.run([&] { return v.read(); }).kind(), ReplicaKind::mirrored);
}

TEST_P(Run, AnOnReadVariablesValueIsPerReplica) {
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}), {.synchronization = VariableSynchronization::on_read,
                                 .aggregation = VariableAggregation::sum});
  const auto values = strategy.run([&] { return v.read(); });
  EXPECT_EQ(values.kind(), ReplicaKind::per_replica);
  EXPECT_THAT(strategy.reduce(ReduceOp::sum, values), holds({2, 4}));
}

TEST(RunOnOneReplica, ReturnsAPerReplicaToo) {
  const OneDeviceStrategy strategy;
  const Tensor shared(3.0f);
  const auto result = strategy.run([&] { return shared; });
  EXPECT_EQ(result.size(), 1u);
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, result).item<float>(), 3);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, result).item<float>(), 3);
}

}  // namespace
}  // namespace lockstep
