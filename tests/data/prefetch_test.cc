// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;
using testing::ThrowsMessage;

auto endless(std::atomic<int>& calls) {
  return from_generator([&calls] {
    return [&calls]() -> std::optional<Tensor> { return Tensor(std::int64_t{calls++}); };
  });
}

template <class Predicate>
bool within(std::chrono::milliseconds limit, Predicate done) {
  for (const auto end = Clock::now() + limit; Clock::now() < end; std::this_thread::sleep_for(1ms))
    if (done()) return true;
  return done();
}

TEST(Prefetch, ChangesNeitherElementsNorOrder) {
  EXPECT_EQ(values_of(range(1000).prefetch(3)), iota(1000));
  const auto batches = range(100).shuffle({.seed = 1}).batch(7);
  EXPECT_EQ(values_of(batches.prefetch(1)), values_of(batches.prefetch(50)));
  EXPECT_EQ(values_of(range(50).prefetch(2).batch(4).prefetch(2).prefetch(1)), iota(50));
  EXPECT_EQ(range(3).prefetch(0).describe(), "range(0, 3)");
  EXPECT_THROW(range(3).prefetch(-1), InvalidArgument);
}

TEST(Prefetch, ReadsAheadInTheBackgroundButNotFurther) {
  std::atomic<int> calls = 0;
  auto iterator = endless(calls).prefetch(4).iterator();
  EXPECT_EQ(calls, 0) << "nothing is read before the first next()";
  iterator.next();
  EXPECT_TRUE(within(5s, [&] { return calls == 5; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(calls, 5);
}

// S20 without a strategy.
TEST(Prefetch, OfEndlessDataEndsAtOnceWithItsIterator) {
  std::atomic<int> calls = 0;
  Clock::time_point broke;
  {
    const auto dataset = endless(calls).prefetch(8);
    int steps = 0;
    for ([[maybe_unused]] const Tensor& element : dataset)
      if (++steps == 5) break;
    broke = Clock::now();
  }
  EXPECT_LT(Clock::now() - broke, 2s);
  EXPECT_LE(calls, 5 + 8 + 1);
}

TEST(Prefetch, IsCancelledWithinALargeBatchOfSlowElements) {
  const auto slow_after_a_batch = [](const Tensor& x) {
    if (x.item<int>() >= 1000) std::this_thread::sleep_for(10ms);
    return x;
  };
  Clock::time_point done;
  {
    auto iterator = range(1 << 20).map(slow_after_a_batch).batch(1000).prefetch(1).iterator();
    iterator.next();
    std::this_thread::sleep_for(20ms);  // the second batch is begun, and would take 10 s
    done = Clock::now();
  }
  EXPECT_LT(Clock::now() - done, 2s);
}

TEST(Prefetch, OfAPrefetchIsCancelledToo) {
  std::atomic<int> calls = 0;
  const auto start = Clock::now();
  {
    const auto slow = endless(calls).map([](const Tensor& x) {
      std::this_thread::sleep_for(2ms);
      return x;
    });
    auto iterator = slow.prefetch(2).batch(2).prefetch(2).batch(2).prefetch(2).iterator();
    iterator.next();
  }
  EXPECT_LT(Clock::now() - start, 2s);
}

TEST(Prefetch, CanBeDestroyedAtAnyMoment) {
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> calls = 0;
    auto iterator = endless(calls).shuffle({.buffer_size = 16}).batch(4).prefetch(2).iterator();
    for (int step = 0; step < i % 4; ++step) iterator.next();
    if (i % 3 == 0) std::this_thread::yield();
  }
}

TEST(Prefetch, GivesTheElementsBeforeAnErrorThenTheErrorEachTime) {
  const auto failing = range(10).map([](const Tensor& x) {
    if (x.item<int>() == 3) throw std::runtime_error("unreadable");
    return x;
  });
  auto iterator = failing.prefetch(8).iterator();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(iterator.next()->item<int>(), i);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { iterator.next(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("unreadable")));
}

TEST(Prefetch, StaysAtItsEnd) {
  auto iterator = range(2).prefetch(4).iterator();
  EXPECT_TRUE(iterator.next());
  EXPECT_TRUE(iterator.next());
  EXPECT_FALSE(iterator.next());
  EXPECT_FALSE(iterator.next());
}

TEST(Prefetch, StopsAGeneratorThatWaits) {
  const auto waiting = from_generator([](std::stop_token stop) {
    return [stop, i = 0]() mutable -> std::optional<Tensor> {
      if (i++ == 0) return Tensor(1.f);
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      return std::nullopt;
    };
  });
  const auto start = Clock::now();
  {
    auto iterator = waiting.prefetch(2).iterator();
    iterator.next();
  }
  EXPECT_LT(Clock::now() - start, 2s);
}

TEST(Prefetch, IteratorsOfOneDatasetAreIndependent) {
  const auto dataset = range(500).shuffle({.seed = 3}).batch(8).prefetch(2);
  const Integers expected =
      values_of(range(500).shuffle({.seed = 3, .reshuffle_each_iteration = false}));
  std::vector<Integers> results(4);
  std::vector<std::thread> threads;
  for (Integers& result : results)
    threads.emplace_back([&result, iterator = dataset.erased().iterator(0)]() mutable {
      while (const auto leaves = iterator.next())
        for (const std::int64_t value : leaves->at(0).data<std::int64_t>()) result.push_back(value);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Integers& result : results) EXPECT_EQ(result, expected);
}

TEST(Prefetch, IteratorsBegunInManyThreadsAtOnceGetAnEpochEach) {
  const auto dataset = range(64).shuffle().prefetch(2);
  std::vector<std::thread> threads;
  std::array<std::atomic<int>, 4> taken{};
  for (std::size_t i = 0; i < taken.size(); ++i)
    threads.emplace_back([&] {
      auto iterator = dataset.iterator();
      ++taken.at(static_cast<std::size_t>(iterator.epoch()));
      std::int64_t sum = 0;
      while (const auto x = iterator.next()) sum += x->item<std::int64_t>();
      EXPECT_EQ(sum, 64 * 63 / 2);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace lockstep::data
