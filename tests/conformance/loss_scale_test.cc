// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cmath>
#include <limits>

#include "support/strategies.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using lockstep::testing::vec;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

class LossScale : public testing::OnStrategies {
 protected:
  // What plays on 2 replicas, each of which has half of the gradient.
  struct Game {
    Game(const Strategy& on, const Tensor& start, const optim::SGDOptions& sgd_options,
         const optim::LossScaleOptions& options)
        : strategy(on), v(start), sgd(sgd_options), optimizer(sgd, options) {}

    // One step with these gradients of the scaled loss, in all.
    void apply(const Tensor& scaled) {
      strategy.run([&] { optimizer.apply_gradients({scaled * 0.5}, {v}); });
    }
    // Down this slope.
    void descend(const Tensor& slope) {
      strategy.run([&] {
        GradientTape tape;
        optimizer.minimize(sum(v * slope) * 0.5, {v}, tape);
      });
    }
    std::vector<float> value() const {
      testing::require_equal_replicas(std::vector{v, optimizer.scale(), optimizer.good_steps()});
      return v.read().to_vector<float>();
    }
    float scale() const { return optimizer.scale().read().item<float>(); }
    int good() const { return optimizer.good_steps().read().item<int>(); }

    const Strategy& strategy;
    Variable v;
    optim::SGD sgd;
    optim::LossScaleOptimizer optimizer;
  };
  void play(const Tensor& start, const optim::SGDOptions& sgd,
            const optim::LossScaleOptions& options, const std::function<void(Game&)>& f) const {
    run(2, [&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      Game game(strategy, start, sgd, options);
      f(game);
    });
  }
};
LOCKSTEP_ON_STRATEGIES(LossScale);

TEST(LossScaleDefaults, LSC01_GrowEvery2000FiniteSteps) {
  Variable v(Tensor(0.0f));
  optim::SGD sgd({.learning_rate = 0});
  optim::LossScaleOptimizer optimizer(sgd);
  const auto scale = [&] { return optimizer.scale().read().item<float>(); };
  EXPECT_EQ(scale(), 32768);
  EXPECT_EQ(optimizer.scale().dtype(), DType::f32);
  EXPECT_EQ(optimizer.good_steps().read().item<int>(), 0);
  for (int step = 1; step <= 4000; ++step) {
    optimizer.apply_gradients({Tensor(1.0f)}, {v});
    EXPECT_EQ(scale(), step < 2000 ? 32768 : step < 4000 ? 65536 : 131072) << step;
  }
}

TEST_P(LossScale, LSC02_StepsAndSkips) {
  play(vec({1, 2}), {.learning_rate = 1}, {.initial_scale = 2, .growth_steps = 1}, [](Game& game) {
    game.descend(vec({2, 2}));
    EXPECT_THAT(game.value(), ElementsAre(-1, 0));
    EXPECT_EQ(game.scale(), 4);
    game.descend(vec({std::nanf(""), 2}));
    EXPECT_THAT(game.value(), ElementsAre(-1, 0));
    EXPECT_EQ(game.scale(), 2);
    EXPECT_EQ(game.good(), 0);
  });
}

TEST_P(LossScale, LSC04_StaysBetweenItsFloorAndInfinity) {
  const Tensor start = vec({0}), inf = vec({kInf}), finite = vec({0x1p-10f});
  play(start, {}, {.initial_scale = 1}, [&](Game& game) {
    game.apply(inf);
    EXPECT_EQ(game.scale(), 1);
  });
  play(start, {}, {.initial_scale = 0x1p127, .growth_steps = 1}, [&](Game& game) {
    game.apply(finite);
    EXPECT_EQ(game.scale(), 0x1p127f);
    EXPECT_EQ(game.good(), 0);
  });
  play(start, {}, {.initial_scale = 1.5}, [&](Game& game) {
    game.apply(inf);
    EXPECT_EQ(game.scale(), 1);
  });
  play(start, {}, {.initial_scale = 1, .min_scale = 0.25}, [&](Game& game) {
    for (const float expected : {0.5f, 0.25f, 0.25f}) {
      game.apply(inf);
      EXPECT_EQ(game.scale(), expected);
    }
  });
}

TEST_P(LossScale, LSC05_ClipsWhatIsUnscaledAndFinite) {
  play(vec({5}), {.learning_rate = 2, .clip = {.value = 2}},
       {.initial_scale = 2, .growth_steps = 1}, [](Game& game) {
         game.descend(vec({4}));
         EXPECT_THAT(game.value(), ElementsAre(1));
         EXPECT_EQ(game.scale(), 4);
         game.descend(vec({kInf}));
         EXPECT_THAT(game.value(), ElementsAre(1));
         EXPECT_EQ(game.scale(), 2);
       });
}

TEST_P(LossScale, LSC07_CountsFiniteStepsInARow) {
  play(vec({0}), {}, {.initial_scale = 8, .growth_steps = 3}, [](Game& game) {
    const float steps[] = {1, 1, kInf, 1, 1, 1};
    const int counts[] = {1, 2, 0, 1, 2, 0};
    for (int i = 0; i < 6; ++i) {
      game.apply(vec({steps[i]}));
      EXPECT_EQ(game.good(), counts[i]) << "step " << i;
      EXPECT_EQ(game.scale(), i < 2 || i == 5 ? 8 : 4) << "step " << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
