// SPDX-License-Identifier: Apache-2.0
// Layers in programs for TPUs train as they do on CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include "support/traced.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::Noise;
using ::testing::FloatNear;
using ::testing::Pointwise;

Sequential of_images() {
  return Sequential{ZeroPadding({1, 0, 0, 1}),
                    Conv2D(2, 4, {.kernel_size = 3, .strides = 2, .padding = Padding::same}),
                    BatchNorm(4, {.synchronized = true}),
                    relu,
                    DepthwiseConv2D(4, {.kernel_size = 2, .depth_multiplier = 2}),
                    GroupNorm(8, {.groups = 2}),
                    Conv2DTranspose(8, 3, {.kernel_size = 3, .strides = 2}),
                    BatchNorm(3),
                    tanh,
                    MaxPool2D(),
                    UpSampling2D(),
                    AveragePool2D({.pool_size = 3, .strides = 1, .padding = Padding::same}),
                    GlobalAveragePool({.keep_dims = true}),
                    Reshape({3}),
                    Dense(3, 4),
                    LayerNorm(4),
                    Dense(4, 2),
                    RMSNorm(2)};
}

Sequential of_ids() {
  return Sequential{Embedding(7, 4),
                    Conv1D(4, 4, {.kernel_size = 3, .padding = Padding::same, .activation = silu}),
                    Dropout(0.2),
                    DepthwiseConv1D(4, {.kernel_size = 2}),
                    Conv1DTranspose(4, 3, {.kernel_size = 3, .strides = 2, .output_padding = 1}),
                    MaxPool1D(),
                    AveragePool1D({.pool_size = 2, .strides = 1}),
                    UpSampling1D(),
                    GlobalMaxPool(),
                    Dense(3, 2)};
}

Sequential of_volumes() {
  return Sequential{Conv3D(1, 2, {.kernel_size = 2, .activation = tanh}),
                    AveragePool3D({.pool_size = {1, 2, 2}, .strides = 1}),
                    Conv3DTranspose(2, 2, {.kernel_size = 2, .strides = 2}),
                    MaxPool3D(),
                    UpSampling3D({1, 2, 1}),
                    Flatten(),
                    Dense(32, 2)};
}

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> variables;
};

// Three steps, each replica with inputs of its own.
Trained trained(const Strategy& strategy, Sequential (*make)(), const Tensor& x) {
  const auto scope = strategy.scope();
  const Sequential model = make();
  optim::SGD optimizer({.learning_rate = 0.05});
  Trained result;
  for (int i = 0; i < 3; ++i) {
    const auto loss = strategy.run([&] {
      const Tensor id = get_replica_context()->replica_id_in_sync_group();
      const Tensor mine = is_floating(x.dtype()) ? x * (cast(id, DType::f32) + 1) : x + id;
      GradientTape tape;
      const Tensor part = compute_average_loss(square(model(mine, {.training = true}) - 1),
                                               {.global_batch_size = 8});
      optimizer.minimize(part, model.trainable_variables(), tape);
      return part;
    });
    result.losses.push_back(strategy.reduce(ReduceOp::sum, loss).item<double>());
  }
  lockstep::testing::require_equal_replicas(model.variables());
  for (const Variable& variable : model.variables())
    result.variables.push_back(Tensor(variable).to_vector<float>());
  return result;
}

void expect_same_training(Sequential (*make)(), const Tensor& x) {
  const Trained expected =
      trained(MirroredStrategy({.devices = {"CPU:0", "CPU:1"}, .seed = 3}), make, x);
  const Trained got = trained(TPUStrategy({.replicas = 2, .seed = 3}), make, x);
  EXPECT_NE(expected.losses.front(), expected.losses.back());
  EXPECT_THAT(got.losses, Pointwise(::testing::DoubleNear(1e-4), expected.losses));
  ASSERT_EQ(got.variables.size(), expected.variables.size());
  for (std::size_t v = 0; v < got.variables.size(); ++v)
    EXPECT_THAT(got.variables[v], Pointwise(FloatNear(2e-4f), expected.variables[v])) << v;
}

TEST(LayersXla, OfImagesTrainAlike) {
  LOCKSTEP_REQUIRE_PLUGIN();
  expect_same_training(of_images, Noise(1).tensor<float>({4, 7, 9, 2}));
}

TEST(LayersXla, OfIdsTrainAlike) {
  LOCKSTEP_REQUIRE_PLUGIN();
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 4 * 6; ++i) ids.push_back(i * i % 6);
  expect_same_training(of_ids, Tensor({4, 6}, std::span<const std::int32_t>(ids)));
}

TEST(LayersXla, OfVolumesTrainAlike) {
  LOCKSTEP_REQUIRE_PLUGIN();
  expect_same_training(of_volumes, Noise(2).tensor<float>({4, 3, 4, 4, 1}));
}

}  // namespace
}  // namespace lockstep::nn
