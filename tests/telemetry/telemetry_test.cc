// SPDX-License-Identifier: Apache-2.0
#include <lockstep/telemetry/telemetry.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep::telemetry {
namespace {

TEST(Counter, IsOnePerNameAndCountsFromManyThreads) {
  Counter& apples = counter("test_apples_total");
  EXPECT_EQ(&apples, &counter("test_apples_total"));
  EXPECT_NE(&apples, &counter("test_pears_total"));
  const std::int64_t before = apples.value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counter("test_apples_total").add(2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(apples.value() - before, 8000);
  EXPECT_EQ(counters().at("test_apples_total"), apples.value());
}

}  // namespace
}  // namespace lockstep::telemetry
