// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::vec;

class Metrics : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, Metrics, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Metrics, MET01_TheMeanOverUnequalReplicas) {
  const auto strategy = replicas(2, GetParam());
  const auto scope = strategy.scope();
  metrics::Mean mean;
  const auto inside = strategy.run([&] {
    mean.update_state(replica_index() == 0 ? vec({1, 2, 3}) : vec({10}));
    return mean.result();
  });
  EXPECT_THAT(items(inside), ::testing::Each(4));
  EXPECT_EQ(mean.result().item<double>(), 4);
}

// A training step without rows: the loss is 0, moving statistics, gamma and beta stay.
TEST_P(Metrics, MET03_BatchNormOfNoRows) {
  const auto strategy = replicas(2, GetParam());
  for (const bool synchronized : {false, true}) {
    const auto scope = strategy.scope();
    const nn::BatchNorm layer(2, {.synchronized = synchronized});
    optim::SGD sgd({.learning_rate = 1});
    const auto losses = strategy.run([&] {
      GradientTape tape;
      const Tensor loss = nn::compute_average_loss(layer(zeros({0, 2}), {.training = true}));
      sgd.minimize(loss, layer.trainable_variables(), tape);
      return loss;
    });
    EXPECT_THAT(items(losses), ::testing::Each(0));
    EXPECT_THAT(Tensor(layer.moving_mean()), holds({0, 0}));
    EXPECT_THAT(Tensor(layer.moving_variance()), holds({1, 1}));
    EXPECT_THAT(Tensor(*layer.gamma()), holds({1, 1}));
    EXPECT_THAT(Tensor(*layer.beta()), holds({0, 0}));
    EXPECT_EQ(layer(zeros({0, 2})).shape(), Shape({0, 2}));
  }
}

TEST_P(Metrics, MET04_AMovingAverageOfTheReplicasMean) {
  const auto strategy = replicas(2, GetParam());
  const auto scope = strategy.scope();
  const Variable average(vec({10, 11}), {.trainable = false});
  strategy.run([&] {
    const auto r = static_cast<float>(replica_index());
    nn::assign_moving_average(average, vec({1 + r, 2 - r}), 0.25);
  });
  for (const Tensor& value : average.local_values()) EXPECT_THAT(value, holds({3.625f, 3.875f}));
}

}  // namespace
}  // namespace lockstep
