// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using ::testing::ElementsAre;

// One at a time, replicas may share what lockstep does not know of: they never run together, and
// the order is theirs. The vectors here have no locks on purpose.
class OneAtATime : public ::testing::Test {
 protected:
  const MirroredStrategy strategy = replicas(3, ReplicaThreads::one_at_a_time);
  std::vector<std::string> log;

  void note(const std::string& event) { log.push_back(event + std::to_string(replica_index())); }
};

TEST_F(OneAtATime, ReplicasRunInOrder) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    log.clear();
    strategy.run([&] {
      note("a");
      note("b");
    });
    EXPECT_THAT(log, ElementsAre("a0", "b0", "a1", "b1", "a2", "b2"));
  }
}

TEST_F(OneAtATime, TheyHandOverWhereTheyMeet) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    log.clear();
    strategy.run([&] {
      note("before");
      get_replica_context()->merge_call([&] { log.push_back("merge"); });
      note("after");
    });
    EXPECT_THAT(
        log, ElementsAre("before0", "before1", "before2", "merge", "after0", "after1", "after2"));
  }
}

TEST_F(OneAtATime, TheWholeOrderIsTheSameInEveryRun) {
  const auto step = [&] {
    ReplicaContext& context = *get_replica_context();
    for (int i = 0; i < 5; ++i) {
      note("compute" + std::to_string(i) + "/");
      context.all_reduce(ReduceOp::sum, ones({8}));
      note("reduced" + std::to_string(i) + "/");
      if (i % 2) context.merge_call([&] { log.push_back("merge"); });
    }
  };
  strategy.run(step);
  const auto first = std::exchange(log, {});
  EXPECT_EQ(first.size(), 3u * 10 + 2);
  for (int repeat = 0; repeat < 30; ++repeat) {
    strategy.run(step);
    ASSERT_EQ(std::exchange(log, {}), first) << "run " << repeat;
  }
}

TEST_F(OneAtATime, BetweenMeetingPointsTheyComeInReplicaOrder) {
  strategy.run([&] {
    for (int i = 0; i < 4; ++i) {
      note(std::to_string(i) + "/");
      get_replica_context()->all_reduce(ReduceOp::sum, ones({1}));
    }
  });
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i)
    for (int r = 0; r < 3; ++r) expected.push_back(std::to_string(i) + "/" + std::to_string(r));
  EXPECT_EQ(log, expected);
}

TEST_F(OneAtATime, OnlyOneRunsAtAnyMoment) {
  std::atomic<int> inside{0};
  strategy.run([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(++inside, 1);
      std::this_thread::yield();
      --inside;
      get_replica_context()->all_reduce(ReduceOp::sum, ones({4}));
    }
  });
}

TEST_F(OneAtATime, AReplicaThatThrowsReleasesTheOthersInOrder) {
  const testing::QuietLog quiet;
  EXPECT_THROW(strategy.run([&] {
    note("in");
    if (replica_index() == 1) throw 1;
    get_replica_context()->all_reduce(ReduceOp::sum, ones({1}));
    note("out");
  }),
               int);
  EXPECT_THAT(log, ElementsAre("in0", "in1", "in2"));
  log.clear();
  strategy.run([&] { note("next"); });
  EXPECT_THAT(log, ElementsAre("next0", "next1", "next2"));
}

}  // namespace
}  // namespace lockstep
