// SPDX-License-Identifier: Apache-2.0
#include "distribute/thread_team.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>

#include "support/process.h"

namespace lockstep {
namespace {

using ::testing::Each;

TEST(ThreadTeam, EveryMemberTakesPartInEveryJob) {
  for (const int size : {1, 2, 5}) {
    ThreadTeam team(size);
    std::vector<int> calls(static_cast<std::size_t>(size));
    for (int job = 1; job <= 100; ++job) {
      team.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
      ASSERT_THAT(calls, Each(job)) << "of " << size;
    }
  }
}

TEST(ThreadTeam, TheCallerIsMemberZero) {
  ThreadTeam team(3);
  const auto caller = std::this_thread::get_id();
  team.run([&](int member) { EXPECT_EQ(std::this_thread::get_id() == caller, member == 0); });
  std::thread([&] {
    const auto other = std::this_thread::get_id();
    team.run([&](int member) { EXPECT_EQ(std::this_thread::get_id() == other, member == 0); });
  }).join();
}

TEST(ThreadTeam, WakesUpAfterALongPause) {
  ThreadTeam team(2);
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<int> calls = 0;
    team.run([&](int member) { calls += 1 + member; });
    EXPECT_EQ(calls, 3);
  }
}

TEST(ThreadTeam, TakesItsThreadsWithIt) {
  const int before = testing::num_threads();
  for (int i = 0; i < 20; ++i) {
    const ThreadTeam team(4);
    EXPECT_EQ(testing::num_threads(), before + 3);
  }
  EXPECT_EQ(testing::num_threads_once_settled(before), before);
}

}  // namespace
}  // namespace lockstep
