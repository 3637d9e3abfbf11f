// SPDX-License-Identifier: Apache-2.0
// What only a GPU can show; skipped where there is none. tests/gpu/run.sh runs it and more.
#include <gmock/gmock.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/data/digits.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn/dense.h>
#include <lockstep/nn/losses.h>
#include <lockstep/nn/sequential.h>
#include <lockstep/optim/adam.h>

#include <cmath>
#include <string>

#include "device/cuda/status.h"
#include "support/op_cases.h"

namespace lockstep {
namespace {

using lockstep::testing::OpCase;
using lockstep::testing::OpInputs;

constexpr Device kGpu{DeviceKind::cuda, 0};

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::status().devices == 0) GTEST_SKIP() << cuda::status().text;
  }
};

double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-10 : dtype == DType::f32 ? 2e-5 : 4e-2;
}

TEST_F(OnGpu, EveryOpIsTheCpus) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const OpInputs host = OpInputs::on_host(dtype);
    for (const OpCase& c : testing::op_cases()) {
      const DeviceScope scope(kGpu);
      const std::vector<Tensor> got = c.value_and_gradients(host.on(kGpu));
      std::vector<Tensor> expected;
      {
        const DeviceScope cpu(Device{});
        expected = c.value_and_gradients(host);
      }
      ASSERT_EQ(got.size(), expected.size()) << c.name;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].device(), kGpu) << c.name;
        ASSERT_EQ(got[i].shape(), expected[i].shape()) << c.name;
        const auto a = cast(got[i].to_host(), DType::f64).to_vector<double>();
        const auto b = cast(expected[i], DType::f64).to_vector<double>();
        for (std::size_t k = 0; k < a.size(); ++k)
          EXPECT_NEAR(a[k], b[k], tolerance(dtype) * (1 + std::abs(b[k])))
              << c.name << " of " << name_of(dtype) << (i ? ", gradient" : "") << " at " << k;
      }
    }
  }
}

TEST_F(OnGpu, LargeAndOddSizes) {
  testing::Noise noise(3);
  for (const std::int64_t n : {1, 31, 257, 1000003}) {
    const Tensor x = noise.tensor<float>({n});
    const Tensor there = copy_to(x, kGpu);
    EXPECT_EQ(relu(there).to_vector<float>(), relu(x).to_vector<float>());
    EXPECT_NEAR(sum(there).item<double>(), sum(cast(x, DType::f64)).item<double>(), 1e-2);
    EXPECT_NEAR(global_norm(std::span(&there, 1)).item<double>(),
                global_norm(std::span(&x, 1)).item<double>(), 1e-3);
  }
  const Tensor a = noise.tensor<float>({300, 513}), b = noise.tensor<float>({513, 77});
  const auto product = matmul(copy_to(a, kGpu), copy_to(b, kGpu)).to_vector<float>();
  const auto expected = matmul(a, b).to_vector<float>();
  for (std::size_t i = 0; i < product.size(); ++i) EXPECT_NEAR(product[i], expected[i], 1e-3);
}

struct Example {
  Tensor image, label;
};

// The losses of 30 steps on the digits.
std::vector<double> losses_on(const Strategy& strategy) {
  const auto batches =
      strategy.distribute_dataset(data::digits<Example>("train").repeat().batch(128).take(30));
  const auto scope = strategy.scope();
  const nn::Sequential model(nn::Dense(64, 128, {.activation = nn::relu}), nn::Dense(128, 10));
  optim::Adam optimizer({.learning_rate = 1e-2});
  std::vector<double> losses;
  for (const auto& batch : batches) {
    const auto loss = strategy.run(
        [&](const Example& example) {
          GradientTape tape;
          const Tensor mean = nn::compute_average_loss(
              nn::sparse_softmax_cross_entropy(example.label, model(example.image)));
          optimizer.minimize(mean, model.trainable_variables(), tape);
          return mean;
        },
        batch);
    losses.push_back(strategy.reduce(ReduceOp::sum, loss).template item<double>());
  }
  testing::require_equal_replicas(model.trainable_variables());
  return losses;
}

TEST_F(OnGpu, TrainsAsOnTheCpu) {
  const auto expected = losses_on(OneDeviceStrategy());
  const auto got = losses_on(OneDeviceStrategy({.device = "GPU:0"}));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 2e-2 * (1 + expected[i])) << "step " << i;
  EXPECT_LT(got.back(), 0.3 * got.front());
}

TEST_F(OnGpu, AllGpusTrainTogether) {
  const auto expected = losses_on(OneDeviceStrategy());
  const auto got = losses_on(MirroredStrategy({.devices = {"GPU:*"}}));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 2e-2 * (1 + expected[i])) << "step " << i;
}

TEST_F(OnGpu, ASecondStepAsksForNoMemory) {
  const Tensor x = copy_to(full({100, 100}, 1), kGpu);
  const auto step = [&] { return sum(matmul(x, x) * x).item<float>(); };
  step();
  const std::int64_t before = memory_stats(kGpu).system_allocations;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(step(), 1e6f);
  EXPECT_EQ(memory_stats(kGpu).system_allocations, before);
}

}  // namespace
}  // namespace lockstep
