// SPDX-License-Identifier: Apache-2.0
// Every op on a device whose stream runs late: the bits of the CPU, nothing on the host touched, and
// all that a kernel reads and writes declared.
#include <gmock/gmock.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <cstring>
#include <string>
#include <vector>

#include "device/fake/devices.h"
#include "support/errors.h"
#include "support/op_cases.h"
#include "support/update_rows.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::Noise;
using lockstep::testing::op_cases;
using lockstep::testing::OpCase;
using lockstep::testing::OpInputs;
using lockstep::testing::throws;
using lockstep::testing::update_rows;
using lockstep::testing::update_start;
using lockstep::testing::update_step;
using lockstep::testing::UpdateRow;
using ::testing::IsEmpty;

constexpr Device kFake{DeviceKind::fake, 0};

std::vector<std::byte> bytes_of(const Tensor& x) {
  const Tensor here = x.to_host();
  const auto* const first = static_cast<const std::byte*>(here.raw_data());
  return {first, first + here.bytes()};
}

class OnFakeDevice : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, OnFakeDevice,
                         ::testing::Values(DType::f32, DType::f64, DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(OnFakeDevice, EveryOpHasTheBitsOfTheCpu) {
  const OpInputs host = OpInputs::on_host(GetParam());
  std::uint64_t seed = 0;
  for (const OpCase& c : op_cases()) {
    const std::vector<Tensor> expected = c.value_and_gradients(host);
    fake::Devices devices({.devices = 1, .seed = seed++});
    {
      const DeviceScope scope(kFake);
      const std::vector<Tensor> got = c.value_and_gradients(host.on(kFake));
      ASSERT_EQ(got.size(), expected.size()) << c.name;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].device(), kFake) << c.name;
        EXPECT_EQ(got[i].shape(), expected[i].shape()) << c.name;
        EXPECT_EQ(bytes_of(got[i]), bytes_of(expected[i])) << c.name << (i ? ", gradient" : "");
      }
    }
    EXPECT_THAT(devices.findings(), IsEmpty()) << c.name;
  }
}

TEST(OnFakeDevice, HostTensorsGoAlong) {
  fake::Devices devices({.devices = 2, .seed = 1});
  const Tensor host({2}, {1.0f, 2.0f});
  const Tensor there = copy_to(host, kFake);
  EXPECT_EQ((host * there + 1).device(), kFake);
  EXPECT_THAT((host * there + 1).to_vector<float>(), ::testing::ElementsAre(2, 5));
  const Tensor other = copy_to(host, {DeviceKind::fake, 1});
  EXPECT_THAT([&] { there + other; }, throws<InvalidArgument>("FAKE:0", "FAKE:1"));
  EXPECT_THAT(copy_to(other, kFake).to_vector<float>(), ::testing::ElementsAre(1, 2));
  EXPECT_THAT([&] { there.data<float>(); }, throws<Unavailable>("FAKE:0", "copy it to the host"));
  EXPECT_THAT(devices.findings(), IsEmpty());
}

TEST(OnFakeDevice, UpdatesInPlaceWithScalarsOfTheDevice) {
  const auto updated = [](Device device) {
    const DeviceScope scope(device);
    Noise noise(3);
    const Tensor gradient = copy_to(noise.tensor<float>({50}), device);
    const std::int64_t copies = update_copies();
    std::vector<std::vector<std::byte>> results;
    for (const UpdateRow& row : update_rows()) {
      std::vector<Tensor> state =
          update_start(row.rule, copy_to(noise.tensor<float>({50}), device));
      for (int step = 1; step <= 3; ++step) {
        UpdateStep scaled = update_step(0.1, step, 0.01);
        scaled.gradient_scale = Tensor(0.5f);
        apply_update(row.rule, state, gradient, scaled);
      }
      for (const Tensor& x : state) results.push_back(bytes_of(x));
    }
    EXPECT_EQ(update_copies(), copies);
    return results;
  };
  const auto expected = updated(Device{});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fake::Devices devices({.devices = 1, .seed = seed});
    EXPECT_EQ(updated(kFake), expected);
    EXPECT_THAT(devices.findings(), IsEmpty());
  }
}

TEST(OnFakeDevice, DrawsTheNumbersOfTheCpu) {
  const auto drawn = [](Device device) {
    const DeviceScope scope(device);
    RandomState state{.seed = 5};
    const RandomScope random(state);
    const std::vector<Tensor> all{
        uniform({7}, 0, 1),
        normal({7}, 0, 1),
        truncated_normal({7}, 0, 1),
        bernoulli({7}, 0.5),
        full({3}, 2.5),
        range(0, 5),
        uniform_int({7}, 0, 99),
        permutation(9),
        categorical(copy_to(Tensor({1, 3}, {0.0f, 1.0f, 2.0f}), device), 5),
        shuffle(range(0, 5))};
    std::vector<std::vector<std::byte>> bytes;
    for (const Tensor& x : all) {
      EXPECT_EQ(x.device(), device);
      bytes.push_back(bytes_of(x));
    }
    return bytes;
  };
  const auto expected = drawn(Device{});
  const fake::Devices devices({.devices = 1});
  EXPECT_EQ(drawn(kFake), expected);
}

TEST(OnFakeDevice, ALabelOutsideTheClassesIsFoundWhereSomebodyWaits) {
  const fake::Devices devices({.devices = 1});
  const Tensor logits = copy_to(full({2, 3}, 1), kFake);
  const Tensor labels = copy_to(Tensor({2}, {std::int64_t{0}, std::int64_t{3}}), kFake);
  const Tensor loss = sparse_softmax_cross_entropy(labels, logits);
  EXPECT_THAT([&] { loss.to_host(); }, throws<InvalidArgument>("label 3", "row 1"));
}

}  // namespace
}  // namespace lockstep
