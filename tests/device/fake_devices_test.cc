// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/device/buffer.h>
#include <lockstep/device/event.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "device/accelerator.h"
#include "device/fake/devices.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeeds = 200;

// One kind of program for many seeds: what the checker found in each.
using Findings = std::vector<std::string>;
Findings findings_of(std::uint64_t seed, const std::function<void(fake::Devices&)>& program) {
  fake::Devices devices({.devices = 2, .seed = seed});
  program(devices);
  return devices.findings();
}

Device fake_device(int index) { return {DeviceKind::fake, index}; }

// A float in device memory, and kernels on it.
struct Cell {
  explicit Cell(Device device) : buffer(Buffer::allocate(device, sizeof(float))) {}
  Buffer buffer;

  MemoryRange range() const { return {buffer.data(), buffer.bytes()}; }
  float* value() const { return static_cast<float*>(buffer.data()); }
  void set(const Stream& stream, float to) const {
    const MemoryRange written = range();
    accelerator_of(stream.device)
        .launch(stream, {.name = "set", .reads = {}, .writes = {&written, 1}},
                [at = value(), to] { *at = to; });
  }
  // *this = source + 1
  void follow(const Stream& stream, const Cell& source) const {
    const MemoryRange read = source.range(), written = range();
    accelerator_of(stream.device)
        .launch(stream, {.name = "follow", .reads = {&read, 1}, .writes = {&written, 1}},
                [to = value(), from = source.value()] { *to = *from + 1; });
  }
  float on_host() const {
    float here = 0;
    copy_bytes(Device{}, &here, buffer.device(), buffer.data(), sizeof here);
    return here;
  }
};

TEST(FakeDevices, AreThereAsLongAsTheyAreWanted) {
  EXPECT_THROW(parse_device("FAKE:0"), InvalidArgument);
  {
    const fake::Devices devices({.devices = 2});
    EXPECT_THAT(devices.names(), ElementsAre("FAKE:0", "FAKE:1"));
    EXPECT_EQ(parse_device("fake:1"), fake_device(1));
    EXPECT_EQ(list_devices(DeviceKind::fake).size(), 2u);
    EXPECT_THROW(parse_device("FAKE:2"), InvalidArgument);
    EXPECT_THROW(fake::Devices({.devices = 1}), InternalError) << "one set at a time";
  }
  EXPECT_THAT(list_devices(DeviceKind::fake), IsEmpty());
  EXPECT_THROW(compute_stream(fake_device(0)), Unavailable);
}

TEST(FakeDevices, RunAStreamInOrder) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](fake::Devices&) {
                              const Stream stream = compute_stream(fake_device(0));
                              const Cell a(fake_device(0)), b(fake_device(0));
                              a.set(stream, 1);
                              b.follow(stream, a);
                              a.set(stream, 5);
                              EXPECT_EQ(b.on_host(), 2);
                              EXPECT_EQ(a.on_host(), 5);
                            }),
                IsEmpty());
}

TEST(FakeDevices, PutWorkOff) {
  // Of many seeds some leave the work undone until somebody waits for it.
  int late = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    fake::Devices devices({.devices = 1, .seed = seed});
    bool done = false;
    const Stream stream = compute_stream(fake_device(0));
    accelerator_of(stream.device).launch(stream, {.name = "note", .reads = {}, .writes = {}}, [&] {
      done = true;
    });
    late += !done;
    synchronize(stream);
    EXPECT_TRUE(done);
  }
  EXPECT_GT(late, 20);
  EXPECT_LT(late, 180);
}

TEST(FakeDevices, FindARaceBetweenStreamsOnEverySeed) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto found = findings_of(seed, [&](fake::Devices&) {
      const Stream compute = compute_stream(fake_device(0));
      const Stream other = communication_stream(fake_device(0));
      const Cell a(fake_device(0)), b(fake_device(0));
      Event allocated;
      allocated.record(compute);
      allocated.hold(other);
      a.set(compute, 1);
      b.follow(other, a);
      synchronize(other);
      synchronize(compute);
      wrong += b.on_host() != 2;
    });
    EXPECT_THAT(found, Contains(AllOf(HasSubstr("race: "), HasSubstr("set on FAKE:0 compute"),
                                      HasSubstr("follow on FAKE:0 communication"))))
        << seed;
  }
  EXPECT_GT(wrong, 0) << "the numbers show it on some seeds only";
  EXPECT_LT(wrong, static_cast<int>(kSeeds));
}

TEST(FakeDevices, AnEventOrdersStreamsOnEverySeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto found = findings_of(seed, [](fake::Devices&) {
      const Stream compute = compute_stream(fake_device(0));
      const Stream other = communication_stream(fake_device(1));
      const Cell a(fake_device(0)), b(fake_device(0));
      Event written, read;
      a.set(compute, 1);
      written.record(compute);
      written.hold(other);
      b.follow(other, a);
      read.record(other);
      read.hold(compute);
      a.set(compute, 7);
      EXPECT_EQ(b.on_host(), 2);
    });
    EXPECT_THAT(found, IsEmpty()) << seed;
  }
}

TEST(FakeDevices, WaitingOnTheHostOrdersToo) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](fake::Devices&) {
                              const Stream compute = compute_stream(fake_device(0));
                              const Stream other = communication_stream(fake_device(0));
                              const Cell a(fake_device(0)), b(fake_device(0));
                              a.set(compute, 1);
                              synchronize(compute);
                              b.follow(other, a);
                              synchronize(other);
                              EXPECT_EQ(b.on_host(), 2);
                            }),
                IsEmpty());
}

// An event that was recorded for the last step orders nothing of this one.
TEST(FakeDevices, AStaleEventIsARace) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](fake::Devices&) {
                              const Stream compute = compute_stream(fake_device(0));
                              const Stream other = communication_stream(fake_device(0));
                              const Cell a(fake_device(0)), b(fake_device(0));
                              Event written;
                              written.record(compute);
                              a.set(compute, 1);
                              written.hold(other);
                              b.follow(other, a);
                            }),
                Contains(HasSubstr("race: ")));
}

TEST(FakeDevices, FindAWaitForAnEventThatIsNotRecorded) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(
        findings_of(seed,
                    [](fake::Devices&) {
                      const Event event;
                      event.hold(communication_stream(fake_device(1)));
                    }),
        ElementsAre(AllOf(HasSubstr("wait before record"), HasSubstr("FAKE:1 communication"))));
}

TEST(FakeDevices, FindTheUseOfMemoryThatWasGivenBack) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](fake::Devices&) {
                              const Stream stream = compute_stream(fake_device(0));
                              const Cell a(fake_device(0));
                              MemoryRange gone;
                              {
                                const Cell b(fake_device(0));
                                gone = b.range();
                              }
                              accelerator_of(stream.device)
                                  .launch(stream,
                                          {.name = "late", .reads = {&gone, 1}, .writes = {}},
                                          [] {});
                            }),
                ElementsAre(AllOf(HasSubstr("use after free"), HasSubstr("late"))));
}

// Given back while a stream still waits to use it: fine for the device's own stream, which gets the
// next owner's work later; a race for another.
TEST(FakeDevices, MemoryIsReusedInTheComputeStreamsOrder) {
  const auto program = [](StreamRole role) {
    return [role](fake::Devices&) {
      const Stream compute = compute_stream(fake_device(0));
      const Stream user = accelerator_of(compute.device).stream(role);
      const Cell result(fake_device(0));
      Event ready;
      {
        const Cell first(fake_device(0));
        first.set(compute, 1);
        ready.record(compute);
        ready.hold(user);
        result.follow(user, first);
      }
      const Cell second(fake_device(0));
      second.set(compute, 9);
    };
  };
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_THAT(findings_of(seed, program(StreamRole::compute)), IsEmpty());
    EXPECT_THAT(findings_of(seed, program(StreamRole::communication)),
                Contains(HasSubstr("race: ")));
  }
}

TEST(FakeDevices, FreshMemoryHoldsNoNumber) {
  fake::Devices devices({.devices = 1});
  const Cell cell(fake_device(0));
  EXPECT_TRUE(std::isnan(cell.on_host()));
}

TEST(FakeDevices, WhatAKernelThrowsComesOutWhereSomebodyWaits) {
  fake::Devices devices({.devices = 1, .seed = 3});
  const Stream stream = compute_stream(fake_device(0));
  accelerator_of(stream.device).launch(stream, {.name = "bad", .reads = {}, .writes = {}}, [] {
    throw InvalidArgument("[bad] label 12");
  });
  EXPECT_THAT([&] { synchronize(stream); },
              ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("label 12")));
  EXPECT_NO_THROW(synchronize(stream));
}

TEST(FakeDevices, SeveralThreadsPutWork) {
  fake::Devices devices({.devices = 2, .seed = 5});
  std::vector<Cell> cells;
  for (int i = 0; i < 2; ++i) cells.emplace_back(fake_device(i));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      const Stream stream = compute_stream(fake_device(i));
      for (int k = 0; k < 500; ++k) cells[static_cast<std::size_t>(i)].set(stream, k);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Cell& cell : cells) EXPECT_EQ(cell.on_host(), 499);
  EXPECT_THAT(devices.findings(), IsEmpty());
}

using FakeDevicesDeathTest = ::testing::Test;
TEST(FakeDevicesDeathTest, HostCodeThatTouchesDeviceMemoryCrashesAsItWouldWithAGpu) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  fake::Devices devices({.devices = 1});
  const Cell cell(fake_device(0));
  EXPECT_DEATH(*cell.value() = 1, "");
}

}  // namespace
}  // namespace lockstep
