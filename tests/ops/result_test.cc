// SPDX-License-Identifier: Apache-2.0
#include "ops/result.h"

#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

Tensor on(Device device, float value) {
  const DeviceScope scope(device);
  return Tensor(value);
}

// A tensor that claims to be on an accelerator; nothing may touch its memory.
Tensor accelerated(int index) {
  return Tensor(Buffer::wrap({DeviceKind::cuda, index}, nullptr, 4, [] {}), DType::f32, Shape{});
}

TEST(CommonDevice, IsThatOfTheInputs) {
  const Device cpu1{DeviceKind::cpu, 1};
  const Tensor a = on(cpu1, 1), b = on(cpu1, 2);
  EXPECT_EQ((a + b).device(), cpu1);
  EXPECT_EQ(sum(a).device(), cpu1);
}

TEST(CommonDevice, LogicalCpusShareMemory) {
  const Device cpu1{DeviceKind::cpu, 1}, cpu2{DeviceKind::cpu, 2};
  const DeviceScope scope(cpu2);
  const Tensor y = on({}, 1) + on(cpu1, 2);
  EXPECT_EQ(y.device(), cpu2);
  EXPECT_EQ(y.item<float>(), 3);
}

// More GPUs than any machine has.
TEST(CommonDevice, AcceleratorsThatAreNotThereAreUnavailable) {
  EXPECT_THAT([] { accelerated(200) + 1; }, throws<Unavailable>("GPU:200", "not present"));
  EXPECT_THAT([] { sum(accelerated(200)); }, throws<Unavailable>("GPU:200"));
  EXPECT_THAT([] { Tensor(1.0f) * accelerated(200); }, throws<Unavailable>("GPU:200"));
}

TEST(CommonDevice, TwoAcceleratorsAreTheCallersMistake) {
  EXPECT_THAT([] { accelerated(200) + accelerated(201); },
              throws<InvalidArgument>("[add]", "GPU:200", "GPU:201"));
}

TEST(CommonDevice, PassesOverWhatIsAbsent) {
  const Tensor absent, x(1.0f);
  EXPECT_EQ(common_device("op", {&absent, &x}, {}), x.device());
  EXPECT_THAT([&] { common_device("op", {&absent}, {}); }, throws<InvalidArgument>("undefined"));
}

TEST(MakeResult, WritesWhereThePlacementSays) {
  const Buffer place = Buffer::allocate({}, 12);
  const Tensor x = vec<float>({1, 2, 3});
  const Placement placement(place, DType::f32, 3);
  const Tensor y = x + 1;
  EXPECT_EQ(y.raw_data(), place.data());
  EXPECT_TRUE(placement.taken());
}

}  // namespace
}  // namespace lockstep
