// SPDX-License-Identifier: Apache-2.0
// What InProcessGroup promises beyond a Communicator.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/base/log.h>
#include <lockstep/comm/in_process.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "comm/in_process_world.h"

// Sanitizers bring an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_COUNT_ALLOCATIONS 1
namespace {
std::atomic<long> allocations{0};
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Pending sum(Communicator& comm, std::int64_t sequence, std::span<float> data) {
  return comm.all_reduce({.sequence = sequence}, ReduceOp::sum, elements(data), elements(data));
}

TEST(InProcessGroup, RefusesGroupsAndRanksThatCannotBe) {
  EXPECT_THROW(InProcessGroup(0), InvalidArgument);
  InProcessGroup group(2);
  EXPECT_EQ(group.size(), 2);
  EXPECT_EQ(group.rank(1).rank(), 1);
  EXPECT_THROW(group.rank(2), InvalidArgument);
  EXPECT_THROW(group.returned(-1), InvalidArgument);
  EXPECT_THAT(group.rank(0).describe(), HasSubstr("rank 0 of 2"));
}

TEST(InProcessGroup, RefusesDeviceMemory) {
  InProcessGroup group(1);
  float x = 1;
  const Elements range{&x, 1, DType::f32};
  EXPECT_THROW(group.rank(0).broadcast({}, 0, range, {.device = {DeviceKind::cuda, 0}}).wait(),
               InvalidArgument);
}

TEST(InProcessGroup, ARankThatIsBusyElsewhereHoldsNobodyUp) {
  InProcessGroup group(2);
  std::vector<float> a(1 << 20, 1), b(1 << 20, 2);
  std::atomic<bool> entered{false}, finished{false};
  std::thread busy([&] {
    Pending pending = sum(group.rank(0), 0, a);
    entered = true;
    while (!finished) std::this_thread::sleep_for(1ms);  // makes no call
    pending.wait();
  });
  while (!entered) std::this_thread::yield();
  sum(group.rank(1), 0, b).wait();
  EXPECT_EQ(b.front(), 3);
  EXPECT_EQ(a.back(), 3);
  finished = true;
  busy.join();
}

TEST(InProcessGroup, OneThreadMayPlayAllRanks) {
  InProcessGroup group(3);
  std::vector<std::vector<float>> data(3, std::vector<float>(50'000, 1));
  std::vector<Pending> pending;
  for (int rank = 0; rank < 3; ++rank)
    pending.push_back(sum(group.rank(rank), 0, data[static_cast<std::size_t>(rank)]));
  for (Pending& each : pending) each.wait();
  for (const auto& each : data) EXPECT_EQ(each.back(), 3);
}

TEST(InProcessGroup, BeginEpochRefusesHandlesThatAreLeft) {
  InProcessGroup group(2);
  Pending left = group.rank(0).barrier({.name = "left over"});
  try {
    group.begin_epoch();
    FAIL() << "expected FailedPrecondition";
  } catch (const FailedPrecondition& e) {
    EXPECT_THAT(e.what(), HasSubstr("left over"));
  }
  left = Pending();
  group.begin_epoch();
  Pending first = group.rank(0).barrier({}), second = group.rank(1).barrier({});
  first.wait();
  second.wait();
}

TEST(InProcessGroup, ACallAfterReturnedIsRefused) {
  InProcessGroup group(2);
  group.returned(0);
  EXPECT_THROW(group.rank(0).barrier({}).wait(), FailedPrecondition);
  group.begin_epoch();
  const Pending fine = group.rank(0).barrier({});
}

TEST(InProcessGroup, AWaiterWarnsWhoIsMissing) {
  std::mutex mutex;
  std::vector<std::string> lines;
  logging::set_sink([&](logging::Level, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  InProcessGroup group(3, {.warn_every = 50ms});
  const Pending early = group.rank(2).barrier({.name = "start"});
  EXPECT_THROW(group.rank(0).barrier({.name = "start"}).wait(Deadline::after(180ms)),
               DeadlineExceeded);
  logging::set_sink({});
  const std::lock_guard lock(mutex);
  EXPECT_GE(lines.size(), 2U);
  EXPECT_LE(lines.size(), 4U);
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], AllOf(HasSubstr("rank 0 has waited"), HasSubstr("for rank 1 at barrier"),
                              HasSubstr("\"start\""), HasSubstr("rank 1 has made no call")));
}

// Lets one rank run at a time: the baton goes round at every wait, as a strategy's deterministic
// mode does.
class Baton final : public WaitPolicy {
 public:
  explicit Baton(int ranks) : ranks_(ranks) {}
  bool pause(int rank, Backoff&) noexcept override {
    std::unique_lock lock(mutex_);
    pass(rank);
    turned_.wait(lock, [&] { return holder_ == rank; });
    return true;
  }
  void start(int rank) {
    std::unique_lock lock(mutex_);
    turned_.wait(lock, [&] { return holder_ == rank; });
  }
  void finish(int rank) {
    const std::lock_guard lock(mutex_);
    over_ |= 1U << rank;
    pass(rank);
  }

 private:
  void pass(int rank) {
    int next = rank;
    for (int i = 1; i <= ranks_; ++i) {
      next = (rank + i) % ranks_;
      if (!(over_ >> next & 1U)) break;
    }
    holder_ = next;
    turned_.notify_all();
  }
  const int ranks_;
  int holder_ = 0;
  unsigned over_ = 0;
  std::mutex mutex_;
  std::condition_variable turned_;
};

TEST(InProcessGroup, AWaitPolicyMayRunOneRankAtATime) {
  constexpr int kRanks = 3;
  Baton baton(kRanks);
  InProcessGroup group(kRanks, {.wait_policy = &baton});
  std::vector<std::string> trace;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      baton.start(rank);
      for (int i = 0; i < 3; ++i) {
        std::vector<float> x(40'000, 1);
        trace.push_back(std::to_string(i) + std::to_string(rank));
        sum(group.rank(rank), i, x).wait();
        EXPECT_EQ(x.back(), kRanks);
      }
      group.returned(rank);
      baton.finish(rank);
    });
  for (std::thread& thread : threads) thread.join();
  // The rank that completes a collective runs on to its next wait.
  EXPECT_THAT(trace, ::testing::ElementsAre("00", "01", "02", "12", "10", "11", "21", "22", "20"));
}

#ifdef LOCKSTEP_COUNT_ALLOCATIONS
TEST(InProcessGroup, ASteadyStateAllocatesNothing) {
  InProcessGroup group(2);
  std::vector<float> a(100'000), b(100'000), c(10), d(10);
  const auto step = [&] {
    Pending first[] = {sum(group.rank(0), 0, a), sum(group.rank(0), 1, c)};
    Pending second[] = {sum(group.rank(1), 0, b), sum(group.rank(1), 1, d)};
    for (int i = 0; i < 2; ++i) first[i].wait(), second[i].wait();
  };
  step();
  const long before = allocations;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(allocations - before, 0);
}
#endif

}  // namespace
}  // namespace lockstep::testing
