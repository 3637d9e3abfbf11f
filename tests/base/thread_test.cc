// SPDX-License-Identifier: Apache-2.0
// Threads and deadlines.
#include <gtest/gtest.h>
#include <lockstep/base/deadline.h>
#include <lockstep/base/thread.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

namespace lockstep {
namespace {

using namespace std::chrono_literals;

TEST(AvailableCores, AreThoseOfTheAffinityMask) {
  EXPECT_GE(available_cores(), 1);
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(available_cores(), 1);
  }).join();
}

TEST(SetThreadName, CutsLongNames) {
  std::thread([] {
    char name[16];
    set_thread_name("replica 3");
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "replica 3");
    set_thread_name("a name of twenty-five letters");
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "a name of twent");
  }).join();
}

TEST(Backoff, AsksForTheClockNowAndThenAndLetsOthersRun) {
  for (const bool spin : {true, false}) {
    std::atomic<bool> ready = false;
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      ready = true;
    });
    Backoff backoff(spin);
    const Deadline deadline = Deadline::after(30s);
    bool passed = false, asked = false;
    while (!ready && !passed)
      if (backoff.pause()) {
        asked = true;
        passed = deadline.passed();
      }
    other.join();
    EXPECT_TRUE(asked);
    EXPECT_FALSE(passed);
  }
}

TEST(Deadline, PassesWhenItsTimeHasCome) {
  const Deadline later = Deadline::after(1h);
  EXPECT_FALSE(later.passed());
  EXPECT_GT(later.remaining(), 59min);
  const Deadline now = Deadline::after(0ms);
  EXPECT_TRUE(now.passed());
  EXPECT_EQ(now.remaining(), 0ms);
  EXPECT_EQ(Deadline::after(-5s).remaining(), 0ms);
}

}  // namespace
}  // namespace lockstep
