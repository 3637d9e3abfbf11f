// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/device/buffer.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Devices that no other test touches, so that their pools start empty.
Device fresh_device() {
  static int next = 100;
  return {DeviceKind::cpu, next++};
}

TEST(Buffer, IsAlignedAndAsLargeAsAsked) {
  const Device device = fresh_device();
  for (const std::size_t bytes : {0u, 1u, 64u, 65u, 513u, 4096u, 100000u, (2u << 20) + 1}) {
    const Buffer buffer = Buffer::allocate(device, bytes);
    EXPECT_TRUE(buffer);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(buffer.device(), device);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    std::memset(buffer.data(), 0xFF, bytes);
  }
  EXPECT_FALSE(Buffer());
  EXPECT_EQ(Buffer().bytes(), 0u);
}

TEST(Buffer, TheSecondRoundAsksNothingOfTheSystem) {
  const Device device = fresh_device();
  const auto step = [&] {
    std::vector<Buffer> buffers;
    for (const std::size_t bytes : {100u, 100u, 5000u, 1u << 20})
      buffers.push_back(Buffer::allocate(device, bytes));
  };
  step();
  const MemoryStats first = memory_stats(device);
  EXPECT_EQ(first.system_allocations, 4);
  EXPECT_EQ(first.in_use, 0);
  EXPECT_GE(first.cached, 100 + 100 + 5000 + (1 << 20));
  EXPECT_EQ(first.cached, first.peak);
  for (int i = 0; i < 10; ++i) step();
  const MemoryStats last = memory_stats(device);
  EXPECT_EQ(last.system_allocations, 4);
  EXPECT_EQ(last.peak, first.peak);
}

TEST(Buffer, WastesAtMostAnEighthOfLargeBlocks) {
  const Device device = fresh_device();
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t bytes = 1000 + random() % (1 << 22);
    const Buffer buffer = Buffer::allocate(device, bytes);
    const auto used = static_cast<std::size_t>(memory_stats(device).in_use);
    EXPECT_GE(used, bytes);
    EXPECT_LE(used, bytes + bytes / 8 + 1) << bytes;
  }
}

TEST(Buffer, PoolsOfDevicesAreApart) {
  const Device a = fresh_device(), b = fresh_device();
  const Buffer buffer = Buffer::allocate(a, 1000);
  EXPECT_GT(memory_stats(a).in_use, 0);
  EXPECT_EQ(memory_stats(b).in_use, 0);
}

TEST(Buffer, IsUniqueWithOneHandle) {
  Buffer buffer = Buffer::allocate(fresh_device(), 100);
  EXPECT_TRUE(buffer.unique());
  {
    const Buffer copy = buffer;
    EXPECT_FALSE(buffer.unique());
    EXPECT_TRUE(copy.shares_allocation(buffer));
    EXPECT_EQ(copy.data(), buffer.data());
  }
  EXPECT_TRUE(buffer.unique());
  const Buffer moved = std::move(buffer);
  EXPECT_TRUE(moved.unique());
  EXPECT_FALSE(Buffer().unique());
}

TEST(Buffer, ASliceKeepsTheAllocationAndCountsAsAHandle) {
  const Device device = fresh_device();
  Buffer whole = Buffer::allocate(device, 256);
  static_cast<char*>(whole.data())[70] = 'x';
  Buffer slice = whole.slice(64, 100);
  EXPECT_FALSE(whole.unique());
  EXPECT_FALSE(slice.unique());
  EXPECT_TRUE(slice.shares_allocation(whole));
  EXPECT_EQ(slice.bytes(), 100u);
  EXPECT_EQ(static_cast<char*>(slice.data())[6], 'x');
  whole = Buffer();
  EXPECT_TRUE(slice.unique());
  EXPECT_GT(memory_stats(device).in_use, 0);
  EXPECT_EQ(static_cast<char*>(slice.data())[6], 'x');
  EXPECT_EQ(slice.slice(100, 0).bytes(), 0u);
  EXPECT_THROW(slice.slice(1, 100), InternalError);
  slice = Buffer();
  EXPECT_EQ(memory_stats(device).in_use, 0);
}

TEST(Buffer, WrappedMemoryIsReleasedWithTheLastHandle) {
  int releases = 0;
  char memory[64] = "theirs";
  {
    const Buffer buffer = Buffer::wrap({}, memory, sizeof memory, [&] { ++releases; });
    EXPECT_EQ(buffer.data(), memory);
    const Buffer slice = buffer.slice(1, 2);
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
  EXPECT_NO_THROW(Buffer::wrap({}, memory, sizeof memory, {}));
}

TEST(Buffer, BeyondTheLimitIsResourceExhaustedWithAllNumbers) {
  const Device device = fresh_device();
  const Buffer held = Buffer::allocate(device, 4096);
  Buffer::allocate(device, 8192);  // given back, but the peak
  set_memory_limit(device, 10000);
  EXPECT_THAT([&] { Buffer::allocate(device, 7000); },
              ThrowsMessage<ResourceExhausted>(AllOf(
                  HasSubstr("asked 7000 bytes"), HasSubstr("in use 4096"), HasSubstr("peak 12288"),
                  HasSubstr("limit 10000"), HasSubstr(device.to_string()))));
  EXPECT_EQ(memory_stats(device).in_use, 4096) << "a refusal changes nothing";
  EXPECT_NO_THROW(Buffer::allocate(device, 5000));
  set_memory_limit(device, 0);
  EXPECT_NO_THROW(Buffer::allocate(device, 7000));
  EXPECT_THROW(set_memory_limit(device, -1), InvalidArgument);
}

TEST(Buffer, MoreThanAnySystemHasIsResourceExhausted) {
  const Device device = fresh_device();
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, (SIZE_MAX >> 2) + 2, SIZE_MAX >> 3})
    EXPECT_THROW(Buffer::allocate(device, bytes), ResourceExhausted) << bytes;
  EXPECT_EQ(memory_stats(device).in_use, 0);
}

TEST(Buffer, ManyThreadsAllocateShareAndRelease) {
  const Device device = fresh_device();
  constexpr int kThreads = 4, kRounds = 2000;
  const Buffer shared = Buffer::allocate(device, 128);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Buffer> mine;
      for (int i = 0; i < kRounds; ++i) {
        Buffer buffer = Buffer::allocate(device, 1 + random() % 3000);
        std::memset(buffer.data(), t, buffer.bytes());
        mine.push_back(std::move(buffer));
        mine.push_back(shared.slice(random() % 64, 64));
        if (mine.size() > 20) {
          for (const Buffer& kept : mine) {
            if (kept.shares_allocation(shared)) continue;
            for (std::size_t b = 0; b < kept.bytes(); b += 97)
              ASSERT_EQ(static_cast<char*>(kept.data())[b], t) << "memory given out twice";
          }
          mine.clear();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(shared.unique());
  EXPECT_EQ(memory_stats(device).in_use, 128);
}

TEST(Buffer, IsReleasedFromAnyThread) {
  const Device device = fresh_device();
  Buffer buffer = Buffer::allocate(device, 1000);
  std::thread([taken = std::move(buffer)]() mutable { taken = Buffer(); }).join();
  EXPECT_EQ(memory_stats(device).in_use, 0);
}

}  // namespace
}  // namespace lockstep
