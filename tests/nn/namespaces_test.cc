// SPDX-License-Identifier: Apache-2.0
// Programs that use the namespace lockstep, and those that use lockstep::nn besides, compile.
#include <gmock/gmock.h>
#include <lockstep/lockstep.h>

#include "support/values.h"

namespace {

const lockstep::Tensor kRows({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
const lockstep::Tensor kOnes({2}, {1.0f, 1.0f});

TEST(Namespaces, OfLayersCanBeNamedWithinThatOfOps) {
  using namespace lockstep;
  const nn::Sequential model(nn::Dense(2, 2, {.activation = nn::relu}), nn::BatchNorm(2));
  EXPECT_EQ(model(relu(kRows)).shape(), Shape({2, 2}));
  const BatchNormResult normal = batch_norm(kRows, kOnes, zeros({2}));
  EXPECT_THAT(normal.mean, lockstep::testing::holds({2, 3}));
}

TEST(Namespaces, OfLayersAndOpsCanBeUsedTogether) {
  using namespace lockstep;
  using namespace lockstep::nn;
  const Sequential model(Dense(2, 2, {.activation = nn::relu}), BatchNorm(2, {.momentum = 0.5}),
                         LayerNorm(2, {.epsilon = 1e-5}), RMSNorm(2), GroupNorm(2, {.groups = 2}),
                         Dropout(0.5), Dense(2, 2));
  EXPECT_EQ(model(kRows).shape(), Shape({2, 2}));
  EXPECT_THAT(batch_norm(kRows, kOnes, {}, {.epsilon = 1e-5}).mean,
              lockstep::testing::holds({2, 3}));
  EXPECT_EQ(layer_norm(kRows, kOnes, {}, {.epsilon = 1e-5}).shape(), Shape({2, 2}));
  EXPECT_EQ(compute_average_loss(sparse_softmax_cross_entropy(Tensor({2}, {0, 1}), kRows)).rank(),
            0);
}

}  // namespace
