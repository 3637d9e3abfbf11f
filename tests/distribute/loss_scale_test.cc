// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <limits>

#include "support/strategies.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using ::testing::DoubleNear;
using ::testing::Each;

class LossScaling : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(LossScaling);

// 1 on every replica, infinite on replica `poisoned`.
Tensor slope(int poisoned) {
  const Tensor id = get_replica_context()->replica_id_in_sync_group();
  return select(equal(id, poisoned), std::numeric_limits<float>::infinity(), Tensor(1.0f));
}

TEST_P(LossScaling, S08_OverflowOnOneReplica) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(8.0f));
    optim::SGD sgd({.learning_rate = 1});
    optim::LossScaleOptimizer optimizer(sgd, {.growth_steps = 3});
    const auto step = [&](int poisoned) {
      strategy.run([&] {
        GradientTape tape;
        optimizer.minimize(w * slope(poisoned), {w}, tape);
      });
    };
    step(-1);
    EXPECT_THAT(items(w.local_values()), Each(6));
    step(1);
    EXPECT_THAT(items(w.local_values()), Each(6));
    EXPECT_THAT(items(optimizer.scale().local_values()), Each(16384));
    EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
    EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 2);
    EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
    for (int i = 0; i < 3; ++i) step(-1);
    EXPECT_THAT(items(w.local_values()), Each(0));
    EXPECT_THAT(items(optimizer.scale().local_values()), Each(32768));
    EXPECT_EQ(optimizer.consecutive_skips().read().item<int>(), 0);
  });
}

TEST_P(LossScaling, S09_UnscaleThenCheckThenClip) {
  for (const double scale : {1.0, 1024.0, 65536.0})
    run(2, [&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable a(Tensor(0.0f)), b(Tensor(0.0f));
      optim::SGD sgd({.learning_rate = 1, .clip = {.global_norm = 1}});
      optim::LossScaleOptimizer optimizer(sgd, {.initial_scale = scale});
      strategy.run([&] {
        GradientTape tape;
        optimizer.minimize(a * 1.5f + b * 2.0f, {a, b}, tape);
      });
      EXPECT_THAT(items(a.local_values()), Each(DoubleNear(-0.6, 1e-6))) << scale;
      EXPECT_THAT(items(b.local_values()), Each(DoubleNear(-0.8, 1e-6))) << scale;
    });
}

TEST_P(LossScaling, S41_OverflowOnOneOfFour) {
  run(4, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor({3}, {1.0f, 2.0f, 3.0f}));
    optim::Adam adam({.learning_rate = 0.5});
    optim::LossScaleOptimizer optimizer(adam);
    for (const int poisoned : {-1, 2})
      strategy.run([&] {
        GradientTape tape;
        optimizer.minimize(sum(w * slope(poisoned)), {w}, tape);
      });
    const std::vector<Variable> state{w, adam.slot(w, "m"), adam.slot(w, "v")};
    testing::require_equal_replicas(state);
    EXPECT_NEAR(w.read().to_vector<float>()[0], 0.5, 1e-5) << "one step of Adam";
    EXPECT_THAT(items(optimizer.scale().local_values()), Each(16384));
    EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
    EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
  });
}

}  // namespace
}  // namespace lockstep
