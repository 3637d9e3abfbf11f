// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/base/thread.h>
#include <lockstep/device/device.h>

#include <thread>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParseDevice, ReadsNamesInAnyCase) {
  EXPECT_EQ(parse_device("CPU:0"), (Device{DeviceKind::cpu, 0}));
  EXPECT_EQ(parse_device("cpu:17"), (Device{DeviceKind::cpu, 17}));
  EXPECT_EQ(parse_device("Cpu"), (Device{DeviceKind::cpu, 0}));
  EXPECT_EQ(parse_device(Device{DeviceKind::cpu, 3}.to_string()), (Device{DeviceKind::cpu, 3}));
}

TEST(ParseDevice, RefusesWhatIsNoName) {
  for (const char* name : {"", ":", "CPU:", "CPU:x", "CPU:-1", "CPU:1x", "CPU: 1",
                           "CPU:99999999999", "NPU:0", "CPU:0:1", "/CPU:0"})
    EXPECT_THAT([&] { parse_device(name); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[parse_device]"), HasSubstr(name))))
        << name;
}

TEST(ListDevices, HasACpuForEachAvailableCore) {
  const std::vector<Device> cpus = list_devices(DeviceKind::cpu);
  EXPECT_EQ(std::ssize(cpus), available_cores());
  for (std::size_t i = 0; i < cpus.size(); ++i)
    EXPECT_EQ(cpus[i], (Device{DeviceKind::cpu, static_cast<int>(i)}));
}

// Without an accelerator the name is known and the text says what is missing.
TEST(ParseDevice, SaysHowToGoOnWithoutTheAccelerator) {
  for (const auto& [name, kind] :
       {std::pair("GPU:0", DeviceKind::cuda), {"tpu", DeviceKind::xla}}) {
    if (!list_devices(kind).empty()) continue;
    EXPECT_THAT([name = name] { parse_device(name); },
                ThrowsMessage<Unavailable>(AllOf(HasSubstr(name), HasSubstr("CPU:i"))));
  }
}

TEST(DeviceScope, NestsAndHoldsForItsThreadOnly) {
  EXPECT_EQ(current_device(), Device{});
  {
    const DeviceScope outer({DeviceKind::cpu, 1});
    EXPECT_EQ(current_device().index, 1);
    {
      const DeviceScope inner({DeviceKind::cpu, 2});
      EXPECT_EQ(current_device().index, 2);
      std::thread([] { EXPECT_EQ(current_device(), Device{}); }).join();
    }
    EXPECT_EQ(current_device().index, 1);
  }
  EXPECT_EQ(current_device(), Device{});
}

}  // namespace
}  // namespace lockstep
